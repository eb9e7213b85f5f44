// fuseline verify --all-blocks: every shipped block at small sizes, in every phase, storage type
// and number format.
#pragma once

#include <optional>
#include <string>

#include "cli/app.h"
#include "cli/commands.h"
#include "sim/executor/verification.h"
#include "sim/selection/selection.h"

namespace fuseline {

// A table with a line for each block, and what failed. `words` may name policies, a phase and one
// block. InputError: other words, since sizes and formats are those of `small_blocks`.
CommandResult verify_all_blocks(const SelectionWords& words,
                                const std::optional<std::string>& scenario,
                                executor::VerifyOptions options);

}  // namespace fuseline
