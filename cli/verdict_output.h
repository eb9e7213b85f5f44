// What `verdict` prints.
#pragma once

#include <string>

#include "cli/selection.h"
#include "sim/verdict/verdict.h"

namespace fuseline {

// Tables of edges and policies, and below each what limits it.
std::string verdict_text(const Selection& selection, const BlockVerdict& verdict);
// A line for each edge and each policy.
std::string verdict_csv(const Selection& selection, const BlockVerdict& verdict);

}  // namespace fuseline
