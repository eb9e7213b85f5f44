// What verify prints.
#pragma once

#include <string>

#include "cli/selection.h"
#include "sim/executor/verification.h"

namespace fuseline {

std::string verification_table(const Selection& selection, const executor::VerifyOptions& options,
                               const executor::Verification& result);

// The first thing that failed, in one line; empty when all passed.
std::string first_failure(const executor::Verification& result);

}  // namespace fuseline
