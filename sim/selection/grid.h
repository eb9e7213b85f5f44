// A grid of requests, and their predictions in parallel.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/report/json_output.h"
#include "sim/selection/selection.h"

namespace fuseline {

// Every combination of lists: names between commas, sizes also as ranges
// (sim/selection/size_list.h). `scenario_path`: a scenario for what the lists leave open. `price`:
// an hour of the GPU. InputError: as resolve_selection, or more than 20,000 predictions.
std::vector<Selection> resolve_grid(const std::optional<std::string>& scenario_path,
                                    const SelectionWords& lists,
                                    const std::optional<std::string>& price);

// All predictions of the cells, in their order; empty when `stop` was set. `stop` may be null, and
// `progress` empty. InputError: more than 20,000 predictions.
std::optional<std::vector<SweptCase>> predict_grid(
    const std::vector<Selection>& cells, const std::atomic<bool>* stop = nullptr,
    const std::function<void(std::size_t done, std::size_t count)>& progress = {});

}  // namespace fuseline
