// FlashAttention alone: unfused, except that scores, softmax and context are one kernel.
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/attention_backward.h"

namespace fuseline {

PolicyRules policy::flash_attention() {
  PolicyRules rules = policy::unfused();
  rules.info = PolicyInfo{.name = "flash-attention",
                          .imitates = "FlashAttention alone",
                          .fuses = "only the attention of unfused",
                          .place = 50};
  rules.fused_attention = true;
  rules.training = TrainingRules{.options = flash_attention_options, .after = {accumulate_dq()}};
  return rules;
}

}  // namespace fuseline
