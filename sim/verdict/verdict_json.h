// A verdict as JSON.
#pragma once

#include <string>

#include "sim/verdict/verdict.h"

namespace fuseline {

// fuseline.verdict/1: docs/cli.md lists the keys.
std::string verdict_json(const PredictionCase& c, const BlockVerdict& verdict);

}  // namespace fuseline
