// What a search for shapes that vary found, as text for a terminal.
#pragma once

#include <string>

#include "sim/search/distribution.h"
#include "sim/selection/selection.h"

namespace fuseline {

std::string distribution_text(const Selection& s, const Distribution& of,
                              const DistributionResult& result);

}  // namespace fuseline
