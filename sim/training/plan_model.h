// A model whose passes are the kernels of one policy's plans, run by the executor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/executor/inputs.h"
#include "sim/executor/plan_runner.h"
#include "sim/gpu/gpu.h"
#include "sim/training/model.h"

namespace fuseline::training {

class PlanModel {
 public:
  // Plans for phase train. What one block leaves for the next (y, and under coda its statistics and
  // weighted copy) the next takes; the first block's come from its plan's preparation, and the
  // exit makes its own. InputError: the policy does not train.
  PlanModel(const ModelConfig& config, const Workload& workload, const std::string& policy,
            const Gpu& gpu, const executor::Workers& workers);

  // The weights are rounded to the workload's type, reordered as the plan wants them; gradients are
  // what the plan stored, in the original order. In fp16 the loss is scaled by 1024 for the
  // backward pass, so that small gradients are not lost.
  StepResult<float> step(const Batch& batch, const Values<float>& weights);

 private:
  using Runner = std::unique_ptr<executor::PlanRunner>;

  void prepare(executor::PlanRunner& runner, std::int64_t layer, const Graph& original,
               const Values<float>& weights, const executor::Storage* x);
  void hand_over(const executor::PlanRunner& from, executor::PlanRunner& to) const;
  void collect(const executor::PlanRunner& runner, std::int64_t layer, const Graph& original,
               Values<float>& gradients) const;

  ModelGraphs graphs_;
  std::vector<Parameter> parameters_;
  Workload workload_;
  executor::Workers workers_;
  double loss_scale_ = 1;
  Plan entry_plan_, block_plan_, exit_plan_;
  Runner entry_, exit_;
  std::vector<Runner> blocks_;
  executor::Inputs tables_;
};

}  // namespace fuseline::training
