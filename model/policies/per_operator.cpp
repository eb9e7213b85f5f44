// Hand-written op kernels: RoPE of Q and K is one kernel, SwiGLU is one, both cache appends are
// one; a bias goes with its GEMM, because every library's linear layer is one operator; rows of
// experts are summed at places that their sort stores.
#include "model/implementation.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/store_places.h"

namespace fuseline {

PolicyRules policy::per_operator() {
  return {.info = PolicyInfo{.name = "per-operator",
                             .imitates = "hand-written op kernels",
                             .fuses = "attention; one kernel per operator",
                             .place = 40},
          .rewrites = {merge_rope(), store_places()},
          .training = TrainingRules{.before = {merge_rope()},
                                    .options = flash_attention_options,
                                    .after = {accumulate_dq(), store_places()}},
          .fuse = bias_into_gemm,
          .siblings = both_cache_appends,
          .implement = hand_written_implementation};
}

}  // namespace fuseline
