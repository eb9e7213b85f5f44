// The report of `audit` for people: at most 100 columns wide.
#pragma once

#include <string>

#include "sim/judge/audit/audit.h"

namespace fuseline {

// One line of numbers a claim, then one verdict with its reason each. `details`: also what the
// numbers mean together, and what was measured and assumed.
std::string audit_table(const audit::Audit& audit, bool details);

}  // namespace fuseline
