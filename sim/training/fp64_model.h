// The reference: the same model computed in fp64, operator by operator, products by OpenBLAS.
#pragma once

#include <vector>

#include "model/reference.h"
#include "sim/executor/parallel.h"
#include "sim/training/model.h"

namespace fuseline::training {

class Fp64Model {
 public:
  // Types of the workload do not matter: nothing is rounded.
  Fp64Model(const ModelConfig& config, const Workload& workload, const executor::Workers& workers);
  Fp64Model(const Fp64Model&) = delete;  // values refer to the graphs
  Fp64Model& operator=(const Fp64Model&) = delete;

  StepResult<double> step(const Batch& batch, const Values<double>& weights);

 private:
  void set_weights(const Graph& graph, std::int64_t layer, const Values<double>& weights,
                   TensorValues& values) const;
  void run(const Graph& graph, Pass pass, TensorValues& values) const;
  void collect(const Graph& graph, std::int64_t layer, const TensorValues& values,
               Values<double>& gradients) const;

  ModelGraphs graphs_;
  std::vector<Parameter> parameters_;
  executor::Workers workers_;
  TensorValues entry_, exit_;
  std::vector<TensorValues> blocks_;
};

}  // namespace fuseline::training
