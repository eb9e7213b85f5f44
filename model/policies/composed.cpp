// Framework eager with RMSNorm written from primitives too.
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/rewrites/decompose_norm.h"

namespace fuseline {

PolicyRules policy::composed() {
  PolicyRules rules = policy::eager();
  rules.info = PolicyInfo{
      .name = "composed",
      .imitates = "framework eager with norms and RoPE written from primitives",
      .fuses =
          "attention only; RMSNorm is 8 kernels, RoPE 5 per tensor, SiLU and multiply separate",
      .place = 20,
      .version = "2.11"};
  rules.rewrites.insert(rules.rewrites.begin(), decompose_norm());
  rules.training->after.insert(rules.training->after.begin(), decompose_norm());
  return rules;
}

}  // namespace fuseline
