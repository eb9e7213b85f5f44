// Framework eager with RMSNorm written from primitives too.
#include "model/policies/rules.h"
#include "model/rewrites/decompose_norm.h"

namespace fuseline {

PolicyRules composed_policy() {
  PolicyRules rules = eager_policy();
  rules.info = {
      "composed", "framework eager with norms and RoPE written from primitives",
      "attention only; RMSNorm is 8 kernels, RoPE 5 per tensor, SiLU and multiply separate"};
  rules.rewrites.insert(rules.rewrites.begin(), decompose_norm());
  rules.training->after.insert(rules.training->after.begin(), decompose_norm());
  return rules;
}

}  // namespace fuseline
