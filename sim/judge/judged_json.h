// Published figures beside predictions, as JSON.
#pragma once

#include <string>
#include <vector>

#include "sim/judge/published.h"

namespace fuseline {

// fuseline.judgement/1: docs/cli.md lists the keys.
std::string judged_json(const std::vector<JudgedFigure>& figures);

}  // namespace fuseline
