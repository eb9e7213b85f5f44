// What a click on an edge would do, said before the click.
#pragma once

#include <stop_token>
#include <string>

#include "gui/model/compute.h"
#include "gui/model/edit_savings.h"

namespace fuseline::gui {

struct EdgePreview {
  bool legal = false;
  bool splits = false;  // both ends are in one kernel now
  Saving saving{};      // of the whole block; when legal
  std::string text;     // "keep x on chip: HBM traffic −90.2 MB (−7.3 %), ...", or why not
};

// `run`: a prediction with a result. Simulates the edited block (9 to 15 ms), of a
// policy also the custom one like it, and keeps that in the cache: the click itself then finds it
// there. Cancelled.
EdgePreview preview_edge(const Document& document, const RunView& run, const OnChipEdge& edge,
                         ResultCache& cache, const std::stop_token& stop = {});

}  // namespace fuseline::gui
