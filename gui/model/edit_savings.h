// What each fusion that was chosen by hand saves.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/latest_wins.h"
#include "gui/model/results.h"

namespace fuseline::gui {

struct Saving {
  Bytes hbm{};  // less HBM traffic with than without; negative when it costs
  Seconds time;
  std::string text;  // "HBM traffic −90.2 MB (−7.3 %), time −12.1 µs (−1.0 %)"
};
Saving saving_between(const PlanEstimate& before, const PlanEstimate& after);

struct EdgeSaving {
  OnChipEdge edge;
  Saving saving;        // of the edge beside all others that are chosen
  std::string problem;  // the others are illegal without it
};

// One simulation for each chosen edge. `run`: a custom prediction that is ok(). Cancelled.
std::vector<EdgeSaving> edge_savings(const RunView& run, const std::stop_token& stop = {},
                                     const Progress& progress = {});

}  // namespace fuseline::gui
