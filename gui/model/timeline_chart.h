// Kernels of each run in the order of their launches, one row a run, and what L2 holds meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/geometry.h"
#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"
#include "sim/block/residence.h"

namespace fuseline::gui {

enum class Align : std::uint8_t {
  start,  // every run begins at zero: lengths compare
  work,   // the GEMMs and attentions that the runs share begin at one place: kernels compare
};

struct TimelineBar {
  std::size_t kernel = 0;  // launch
  std::string label;
  Seconds begin;  // in the picture: shifted when aligned by work
  Seconds length;
  Seconds gap;                 // of the length, at its begin: launch and barriers
  std::optional<Bound> bound;  // what sets the time; counters do not tell
  std::string tooltip;
  Colour colour;  // of the bound; measured: of the kind
  Thing thing;
};

struct TimelineRow {
  RunId run{};
  std::string label;      // the run's name
  std::string machine{};  // where runs differ in theirs
  bool measured = false;
  std::vector<TimelineBar> bars;
  Seconds total;           // of the run, without shifts
  Seconds unattributed{};  // measured: the block's time less that of its kernels, at the end; may
                           // be negative, as kernels are profiled one by one
  std::string note;        // in place of bars
  std::string sums_up{};  // measured: what its bars and the block's time have to do with each other
  Subject about{};
};

struct TimelineChart {
  Align align = Align::start;
  std::vector<TimelineRow> rows;
  Seconds axis_high;  // a round number of µs above all rows
};

TimelineChart timeline_chart(const Results& results, Align align);
Table to_table(const TimelineChart& chart);

// One tensor in L2, a step for each launch of the run's own timeline.
struct ResidencyStep {
  Seconds begin, end;
  Bytes resident{};
  double fraction = 0;  // of the tensor
  bool alive = false;   // made, and still to be used
  std::string tooltip;
};
struct ResidencyChart {
  RunId run{};
  std::string tensor;
  Bytes bytes{};  // of the tensor
  std::vector<ResidencyStep> steps;
  std::string note;  // in place of steps: on chip, no such tensor, nothing simulated
  Subject about{};
};

// Simulates the run's block again, 10 to 20 ms; a measured run's as replays.
ResidencyChart residency_chart(const RunView& view, const std::string& tensor);
Table to_table(const ResidencyChart& chart);

}  // namespace fuseline::gui
