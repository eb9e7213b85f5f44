// HBM traffic of every run as a stacked bar, predicted beside measured, with the least that HBM
// must move.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/delta.h"
#include "gui/model/results.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

enum class StackBy : std::uint8_t { kernel, tensor };

struct BarPart {
  std::string label;
  Bytes from{};  // where it begins in the stack; the first part begins at zero
  Bytes bytes{};
  std::string tooltip;
  Colour colour;
  Thing thing;  // may be nothing
};

struct TrafficBar {
  RunId run{};
  std::string label;      // the run's name
  std::string machine{};  // where runs differ in theirs
  std::string
      policy;  // bars of one policy, predicted and measured, follow each other in a document
  bool measured = false;
  bool is_baseline = false;
  std::vector<BarPart> parts;  // they add up to `total` exactly
  Bytes total{};
  Delta delta;                 // to the baseline; without texts where that computes another block
  bool like_for_like = false;  // the delta compares replays with replays
  std::string note;            // in place of parts: why there is nothing
  Subject about{};
  std::optional<Subject> base{};  // that the delta compares to
};

struct TrafficChart {
  std::string title = "HBM traffic of one block";
  std::string axis_label = "MB read and written";
  std::vector<TrafficBar> bars;
  Bytes limit{};  // the least that any of the shown blocks must move: the baseline's
  std::string limit_label;
  double axis_high = 1;  // bytes; from zero, a round number above all bars
};

// Stacks in the order of launches, or of tensors as the graph has them, reads before writes. The
// simulator knows which tensor is read, not which is written back: those bytes are one part.
// Counters know no tensors: a measured bar by tensor has one part.
TrafficChart traffic_chart(const Results& results, StackBy by);
Table to_table(const TrafficChart& chart);

}  // namespace fuseline::gui
