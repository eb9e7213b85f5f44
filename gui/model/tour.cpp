#include "gui/model/tour.h"

namespace fuseline::gui {

namespace {

constexpr double kLookingLetters = 80;  // a look takes as long as reading so many letters

double letters_of(const TourStep& step) {
  return static_cast<double>(step.title.size() + step.text.size()) + kLookingLetters;
}

}  // namespace

const std::vector<TourStep>& tour_steps() {
  static const std::vector<TourStep> steps = {
      {"runs", "What is compared",
       "Each line is one way to execute the same block: predicted, or measured on a GPU. "
       "Differences are to the bold one, the baseline. A double click makes another one the "
       "baseline."},
      {"graph", "The block",
       "Boxes are operators. A line is a tensor, as thick as its bytes in HBM. A coloured hull is "
       "what one kernel executes, and a dashed line never leaves the chip."},
      {"graph", "Before the click",
       "A line with a plus can be fused. While the mouse points at it, the details below say what "
       "that would save, or why it is impossible.",
       TourAct::point_at_edge},
      {"graph", "Fuse it",
       "A click keeps the tensor on chip. The strip says what that saved in bytes and time, and a "
       "new run stands in the list.",
       TourAct::fuse_edge},
      {"graph", "Move an operator",
       "Drag an operator: kernels that can take it are green, with the time it would save; the "
       "others are red, with the reason. Dropped beside all of them, it gets a kernel of its own.",
       TourAct::carry_operator},
      {"traffic", "Predicted beside measured",
       "Bytes of HBM, kernel by kernel. Hatched bars were measured; the line is the least that any "
       "schedule must move."},
      {"motion", "Tiles in motion",
       "The walk from which the prediction is made: tiles over SMs, what L2 holds, and what HBM "
       "has moved so far. Space plays it.",
       TourAct::play_motion},
      {"causes", "Why is it slow?",
       "What the shown run loses time to, the largest first. Each change beside it was simulated; "
       "its button makes it."},
      {"graph", "Your turn",
       "The tour's edit is undone now; Ctrl+Z undoes yours. Missions have tasks for you, F1 the "
       "words, and File exports pictures, data and one page.",
       TourAct::undo},
  };
  return steps;
}

double seconds_of(std::size_t step) {
  double all = 0;
  for (const TourStep& s : tour_steps()) all += letters_of(s);
  return kTourSeconds * letters_of(tour_steps().at(step)) / all;
}

}  // namespace fuseline::gui
