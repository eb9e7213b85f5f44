// What `verdict` is asked for.
#pragma once

#include <optional>
#include <string>

#include "sim/selection/selection.h"
#include "sim/verdict/verdict.h"

namespace fuseline {

// `on`: the policy on top of which edges are judged (per-operator). `quick`: without the sizes at
// which gains turn. InputError: an unknown policy; a scenario at fidelity roofline.
VerdictOptions verdict_options(const Selection& selection,
                               const std::optional<std::string>& scenario_path,
                               const std::optional<std::string>& on, bool quick);

}  // namespace fuseline
