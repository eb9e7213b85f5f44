// FlashAttention alone: unfused, except that scores, softmax and context are one kernel.
#include "model/policies/rules.h"
#include "model/rewrites/attention_backward.h"

namespace fuseline {

PolicyRules flash_attention_policy() {
  PolicyRules rules = unfused_policy();
  rules.info = {"flash-attention", "FlashAttention alone", "only the attention of unfused"};
  rules.fused_attention = true;
  rules.training = TrainingRules{.options = flash_attention_options, .after = {accumulate_dq()}};
  return rules;
}

}  // namespace fuseline
