// Which edges of a run a click can change: judged for all of them together, before any is pointed
// at, so that they can be marked.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/run_edits.h"

namespace fuseline::gui {

struct EdgeChance {
  bool legal = false;
  bool splits = false;   // both ends are in one kernel now
  std::string reason{};  // why it is illegal
};

// By edge_text(). Empty for a measured run and for one whose setup is wrong. About a millisecond an
// edge. Cancelled.
std::map<std::string, EdgeChance> edge_chances(const Document& document, RunId run,
                                               const std::vector<OnChipEdge>& edges,
                                               const std::stop_token& stop = {});

}  // namespace fuseline::gui
