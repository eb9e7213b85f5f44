// Log-log roofline per memory level: ceilings of the machines, kernels as points, arrows from the
// baseline.
#pragma once

#include <string>
#include <vector>

#include "gui/model/geometry.h"
#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

struct Ceiling {
  std::string label;  // "HBM 4.80 TB/s", "tensor bf16 989 TFLOP/s"
  Point from, to;     // in data units: FLOP per byte, FLOP/s
  std::string tooltip;
  bool sustained = false;  // dashed: what a streaming read reaches, below the datasheet's roof
  std::string machine{};   // "h200": whose roof it is
  Colour colour{};         // shades tell the machines apart
};

struct RooflinePoint {
  RunId run{};
  std::size_t kernel = 0;  // launch; of the whole block: the number of launches
  bool is_block = false;   // the sum of the run's launches
  std::string label;
  Point at;         // FLOP per byte of the level, FLOP/s
  double size = 0;  // 0 to 1: area in proportion to its part of the run's time
  bool measured = false;
  std::string tooltip;
  Colour colour;
  Thing thing;
};

// From the baseline's kernel to the run's that does the same GEMM or attention, or block to block.
struct RooflineArrow {
  RunId run{};
  Point from, to;
  double ratio = 1;   // the baseline's time over the run's
  std::string label;  // "1.26× faster"
  bool is_block = false;
};

struct RooflineChart {
  MemoryLevel level = MemoryLevel::hbm;
  std::string title;
  std::string x_label = "FLOP per byte";
  std::string y_label = "FLOP/s";
  Range x, y;  // round, beyond the machines' ceilings, and never from the data
  std::vector<Ceiling> ceilings;
  std::vector<RooflinePoint> points;
  std::vector<RooflineArrow> arrows;
  std::vector<RooflinePoint> outside;  // no FLOPs, no bytes, or beyond the axes: listed, not drawn
  std::vector<std::string> not_compared;  // runs without an arrow: they compute another block than
                                          // the baseline
};

// `level`: hbm or l2. Each machine that a run is of has its own roofs, the baseline's first.
RooflineChart roofline_chart(const Results& results, MemoryLevel level);
Table to_table(const RooflineChart& chart, const Results& results);

}  // namespace fuseline::gui
