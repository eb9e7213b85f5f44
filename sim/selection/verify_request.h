// What `verify` is asked for.
#pragma once

#include <optional>
#include <string>

#include "sim/executor/verification.h"
#include "sim/selection/selection.h"

namespace fuseline {

// What was said, before it is checked; absent = not said.
struct VerifyWords {
  std::optional<std::string> layers, threads, seed, fault, memory_limit;
  std::optional<std::string> outliers, input_scale, input_shift, gradient_scale;
};

// InputError: an unknown fault, numbers out of range.
executor::VerifyOptions verify_options(const VerifyWords& words);

// As resolve_selection, with 128 tokens where neither the scenario nor the words say how many and
// no plan is named.
Selection verify_selection(const std::optional<std::string>& scenario_path, SelectionWords words,
                           const VerifyWords& how);

}  // namespace fuseline
