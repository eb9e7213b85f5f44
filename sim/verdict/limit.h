// What limits a fusion: why it cannot be made, or what it costs where it can.
#pragma once

#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

struct FusionLimit {
  std::string word;  // one of limit_words()
  std::string why;   // a sentence without a full stop
};

// "a full row", "a second mainloop", "recomputation", "registers", "SMEM", "waves", ...
const std::vector<std::string>& limit_words();

// The word for a reason of why_not.h, which becomes the limit's sentence.
FusionLimit limit_of_refusal(const std::string& reason);

struct SimulatedPlan {
  Plan plan;
  PlanEstimate estimate;
};

// What an edge kept on chip changes: the kernels of its operators apart and together.
struct EdgeCost {
  Seconds apart, together;
  Bytes hbm_apart, hbm_together;
  FusionLimit limit;
};

// `from`: the edge's producer. `with` keeps the edge on chip, `without` does not; otherwise they
// are the same plan of the same block.
EdgeCost cost_of_edge(const SimulatedPlan& without, const SimulatedPlan& with,
                      const std::string& from, const Gpu& gpu);

// Of a whole plan: the limit of the largest tensor that two neighbours still pass through memory.
FusionLimit limit_of_plan(const Plan& plan);

}  // namespace fuseline
