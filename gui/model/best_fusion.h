// The best fusion of a run's block: what `fuseline search` finds, as choices of edges that the
// window draws and that a person goes on from.
#pragma once

#include <string>

#include "gui/model/document.h"
#include "gui/model/latest_wins.h"
#include "gui/model/search_watch.h"

namespace fuseline::gui {

struct BestFusion {
  CustomFusion custom;           // the found plan's edges and rewrites
  std::optional<Setup> setup{};  // of a pinned run
  Seconds time;                  // of the plan that was found
  Seconds bound;                 // no plan of the space that was searched is faster
  bool complete = false;
  std::string text;       // "1,120.3 µs found among 4,210 plans; no plan is below 1,098.0 µs"
  std::string problem{};  // in place of all: why nothing was searched
};

inline constexpr double kSearchSeconds = 8;

// Of the block of the run's setup, for its time, at fidelity hierarchy; at most `seconds`. Progress
// counts hundredths of that. Cancelled.
// `watch`: sees each plan that is tried.
BestFusion best_fusion(const Document& document, const Run& run, double seconds = kSearchSeconds,
                       const std::stop_token& stop = {}, const Progress& progress = {},
                       SearchWatch* watch = nullptr);

}  // namespace fuseline::gui
