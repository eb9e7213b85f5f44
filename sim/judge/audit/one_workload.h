// All that an audit asks of one workload of a model, at whatever GPUs and under whatever policies:
// the block is built once, and planned once for all GPUs whose thread blocks have equal budgets.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "model/config/config.h"
#include "model/plan.h"
#include "model/target.h"
#include "sim/gpu/gpu.h"
#include "sim/judge/audit/predictions.h"

namespace fuseline::audit {

class OneWorkload {
 public:
  // `config` must outlive it.
  OneWorkload(const ModelConfig& config, Workload workload);
  // InputError: the policy has no plan for the phase.
  Predicted predict(const std::string& policy, const Gpu& gpu, bool with_whole_model);

 private:
  struct Planned {
    std::string policy;
    Target target;
    Plan plan;
    Coverage attention, others;
    std::optional<Bytes> activations;  // of the whole model, once they were asked for
  };
  Planned& planned(const std::string& policy, const Target& target);

  const ModelConfig& config_;
  Workload workload_;
  Graph block_;
  std::deque<Planned> plans_;
};

}  // namespace fuseline::audit
