// fuseline compare --gain-over: gains that were measured, beside predicted ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace fuseline {

// As the options were written; absent = not said.
struct GainTexts {
  std::vector<std::string> folders;  // none: all that are shipped
  std::string over;
  std::optional<std::string> policy, format;
};

// InputError: --policy is missing or names several, a policy that is none, no block was measured
// under both.
std::string compared_gains(const GainTexts& texts);

}  // namespace fuseline
