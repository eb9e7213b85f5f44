// A tour of the window in 90 seconds: where to look, what is there, and what is done there
// meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline::gui {

enum class TourAct : std::uint8_t {
  none,
  point_at_edge,   // one that can be fused
  fuse_edge,       // the same one
  carry_operator,  // one that can be moved: where it can go is shown, and it is put back
  play_motion,
  undo,  // what the tour changed
};

struct TourStep {
  std::string view;  // the view or panel that it is about: "graph", "runs"
  std::string title;
  std::string text;
  TourAct act = TourAct::none;
};

inline constexpr double kTourSeconds = 90;

// What it does to the session is one edit, which its last step takes back.
const std::vector<TourStep>& tour_steps();

// How long a step is shown: as long as reading it takes, of all of which kTourSeconds is the sum.
double seconds_of(std::size_t step);

}  // namespace fuseline::gui
