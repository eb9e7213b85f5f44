// What a chart draws, in data units and without Qt: axes, marks, legend. Each view turns its model
// into a scene; one widget (plot.h) draws all of them, so that they look and behave alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gui/model/geometry.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"

namespace fuseline::gui {

enum class Shape : std::uint8_t {
  bar,      // `from` and `to` are opposite corners
  line,     // straight in pixels, label along it
  arrow,    // a line with a head at `to`
  curve,    // through `path`
  area,     // inside `path`
  point,    // a circle at `from`
  diamond,  // a square on its corner at `from`
};

struct Mark {
  Shape shape = Shape::bar;
  Point from{}, to{};
  std::vector<Point> path{};
  Colour colour{};
  bool measured = false;  // bars are hatched, points hollow
  bool dashed = false;
  bool quiet = false;  // thin, and under what is not
  double size = 0;     // of points, 0 to 1: their area
  std::string label{};
  int label_rank = 0;  // labels that find no room are left out, those of low rank last
  std::string tooltip{};
  Thing thing{};
  std::vector<std::string> operators{};  // highlighted with any of them
};

// A row of bars: its name on the left, a result on the right.
struct Row {
  double at = 0;
  std::string text;
  bool strong = false;  // the baseline
  std::string result{};
  std::string result_note{};  // after the result, in `note_colour`
  Colour note_colour{};
  std::string note{};  // in place of bars: why there are none
  std::string tooltip{};
  Thing thing{};
};

struct Tick {
  double at = 0;
  std::string text;
};

struct AxisSpec {
  std::string label;
  Range range;
  bool log = false;
  double unit = 1;            // ticks show values divided by it
  std::vector<Tick> ticks{};  // instead of round numbers
  bool zooms = true;
};

enum class Swatch : std::uint8_t { fill, hatched, line, dashed, dot, hollow, diamond, arrow };

struct LegendEntry {
  std::string text;
  Colour colour;
  Swatch swatch = Swatch::fill;
  friend bool operator==(const LegendEntry&, const LegendEntry&) = default;
};

struct Scene {
  std::string title;
  AxisSpec x, y;
  std::vector<Row> rows;  // not empty: y has rows from top to bottom, and no ticks
  std::vector<Mark> marks;
  std::vector<LegendEntry> legend;
  std::string footnote;  // under the chart
  std::string problem;   // instead of the chart: why there is none, and what to do
};

// Adds the entry unless it is there.
void add_to_legend(Scene& scene, LegendEntry entry);

// The axis of `count` rows, first on top: row i lies at i.
AxisSpec row_axis(std::size_t count);

// From zero to the first round number above `most`; never beyond `high`.
Range snug_range(double most, double high);

// The scene in words, for those who do not see it: each row with its result, or each named mark,
// and what stands below.
std::string spoken(const Scene& scene);
// A scene that says why it is empty.
Scene empty_scene(std::string title, std::string problem);

// Whether the highlight names the thing, or one of the operators.
bool corresponds(const Highlight& highlight, const Thing& thing,
                 const std::vector<std::string>& operators = {});

}  // namespace fuseline::gui
