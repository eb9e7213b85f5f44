// What a fusion edit saves.
#pragma once

#include <string>

#include "gui/model/roles.h"
#include "sim/block/estimate.h"

namespace fuseline::gui {

struct Saving {
  Bytes hbm{};  // less HBM traffic after than before; negative when it costs
  Seconds time;
  // Of an edit of a policy's run, what leaving the policy's kernels saves: zero otherwise. With the
  // two above it is the whole difference between the two runs.
  Bytes kernels_hbm{};
  Seconds kernels_time;
  std::string text;  // "HBM traffic −90.2 MB (−7.3 %), time −12.1 µs (−1.0 %)"
  Colour colour{ColourRole::neutral, 0};  // better or worse: by the time, else by the bytes
};
Saving saving_between(const PlanEstimate& before, const PlanEstimate& after);

// Of an edit of a policy's run: `like` is the custom run like it, without the edit. The saving is
// that of the edit alone; what comes of custom's own kernels in place of the policy's is always
// said beside it. All percentages are of the policy's run, so that they add up.
Saving saving_of_edit(const std::string& policy, const PlanEstimate& before,
                      const PlanEstimate& like, const PlanEstimate& after);

}  // namespace fuseline::gui
