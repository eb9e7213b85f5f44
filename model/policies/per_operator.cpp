// Hand-written op kernels: RoPE of Q and K is one kernel, SwiGLU is one, both cache appends are
// one; a bias goes with its GEMM, because every library's linear layer is one operator.
#include "model/implementation.h"
#include "model/policies/rules.h"
#include "model/rewrites/attention_backward.h"
#include "model/rewrites/merge_rope.h"

namespace fuseline {

PolicyRules per_operator_policy() {
  return {.info = {"per-operator", "hand-written op kernels", "attention; one kernel per operator"},
          .rewrites = {merge_rope()},
          .training = TrainingRules{.before = {merge_rope()},
                                    .options = flash_attention_options,
                                    .after = {accumulate_dq()}},
          .fuse = bias_into_gemm,
          .siblings = both_cache_appends,
          .implement = hand_written_implementation};
}

}  // namespace fuseline
