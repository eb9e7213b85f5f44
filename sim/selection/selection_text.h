// A request as the options that repeat it.
#pragma once

#include <optional>
#include <string>

#include "sim/selection/selection.h"

namespace fuseline {

// "scenarios/a.toml --gpu h200 --policy eager,coda", quoted for a shell. The words of fidelity,
// layers, launch and images, which only some commands take, are there when `simulation` is true.
std::string options_text(const std::optional<std::string>& scenario_path,
                         const SelectionWords& words, bool simulation);

}  // namespace fuseline
