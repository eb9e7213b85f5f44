// What `judge` is asked for.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/judge/published.h"

namespace fuseline {

// Published figures beside predictions. `path`: another file than the shipped one. `gpu`: figures
// of that GPU alone. InputError: a bad file, a GPU of which there is no figure.
std::vector<JudgedFigure> judge_figures(
    const std::optional<std::string>& path, const std::optional<std::string>& gpu,
    const std::function<void(std::size_t done, std::size_t count)>& progress = {});

}  // namespace fuseline
