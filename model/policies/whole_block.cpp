// A persistent megakernel: coda's programs are phases of one launch with grid barriers between
// them.
#include "model/policies/rules.h"

namespace fuseline {

PolicyRules whole_block_policy() {
  PolicyRules rules = coda_policy();
  rules.info = {"whole-block", "persistent megakernel",
                "the whole block in one launch; phases separated by grid barriers"};
  rules.persistent = true;
  rules.training.reset();
  rules.why_no_training =
      "a megakernel serves decoding, where the launches that it saves are most of the time";
  return rules;
}

}  // namespace fuseline
