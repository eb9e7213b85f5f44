// Whether what was asked for can be simulated in reasonable time and memory.
#pragma once

#include <optional>
#include <string>

#include "sim/selection/selection.h"

namespace fuseline {

// InputError before the simulation of a block that is too large (sim/block/walk_size.h): the
// option, its value, the policy, and the largest value that can be simulated with the others as
// they are. `scenario_path`: where sizes come from that are not options.
void check_simulation_size(const Selection& selection,
                           const std::optional<std::string>& scenario_path);

}  // namespace fuseline
