// A persistent megakernel: coda's programs are phases of one launch with grid barriers between
// them.
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"

namespace fuseline {

PolicyRules policy::whole_block() {
  PolicyRules rules = policy::coda();
  rules.info =
      PolicyInfo{.name = "whole-block",
                 .imitates = "persistent megakernel",
                 .fuses = "the whole block in one launch; phases separated by grid barriers",
                 .place = 100,
                 .unverified =
                     "only decode was compared: our kernel on an H100, eight blocks, 5.3 % "
                     "off on average"};
  rules.persistent = true;
  rules.training.reset();
  rules.why_no_training =
      "a megakernel serves decoding, where the launches that it saves are most of the time";
  return rules;
}

}  // namespace fuseline
