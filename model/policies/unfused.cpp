// Textbook execution: each operator is a kernel, attention's scores and probabilities go through
// memory, a bias is a pass of its own.
#include "model/implementation.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"

namespace fuseline {

PolicyRules policy::unfused() {
  return {.info = PolicyInfo{.name = "unfused",
                             .imitates = "textbook execution",
                             .fuses = "nothing; attention scores and probabilities go through HBM",
                             .place = 10},
          .rewrites = {},
          .training = TrainingRules{.options = [](const Graph&) { return BackwardOptions{}; }},
          .fused_attention = false,
          .fuse = one_kernel_per_operator,
          .siblings = {},
          .implement = hand_written_implementation};
}

}  // namespace fuseline
