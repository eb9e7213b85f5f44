#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/charts/timeline_view.h"

namespace fuseline::gui {

namespace {

constexpr double kHalf = 0.36;

void add_bar(Scene& scene, const TimelineRow& row, const TimelineBar& bar, double at) {
  const double begin = to_us(bar.begin), end = to_us(bar.begin + bar.length);
  double work = begin;
  if (bar.bound) {
    const double gap = to_us(bar.gap);
    work = std::min(end, begin + gap);
    scene.marks.push_back({.shape = Shape::bar,
                           .from = {begin, at - kHalf},
                           .to = {work, at + kHalf},
                           .colour = {ColourRole::gap, 0},
                           .tooltip = bar.tooltip,
                           .thing = bar.thing});
  }
  // Counters do not tell a bound: one colour for all of them.
  const Colour colour = row.measured ? Colour{ColourRole::neutral, 0} : bar.colour;
  scene.marks.push_back({.shape = Shape::bar,
                         .from = {work, at - kHalf},
                         .to = {end, at + kHalf},
                         .colour = colour,
                         .measured = row.measured,
                         .label = bar.label,
                         .tooltip = bar.tooltip,
                         .thing = bar.thing});
}

// Where the block's own time ends, which is the figure beside the bars: they do not add up to it.
void add_replayed(Scene& scene, const TimelineRow& row, double at) {
  const double end = to_us(row.total);
  const double sum = to_us(row.total - row.unattributed);
  if (sum < end)
    scene.marks.push_back({.shape = Shape::bar,
                           .from = {sum, at - kHalf},
                           .to = {end, at + kHalf},
                           .colour = {ColourRole::gap, 0},
                           .tooltip = row.sums_up,
                           .thing = run_thing(row.run)});
  scene.marks.push_back({.shape = Shape::line,
                         .from = {end, at - 0.5},
                         .to = {end, at + 0.5},
                         .colour = {ColourRole::highlight, 0},
                         .tooltip = row.sums_up});
  add_to_legend(scene, {"the block, replayed as one", {ColourRole::highlight, 0}, Swatch::line});
}

void add_legend(Scene& scene, const TimelineChart& chart) {
  bool gap = false, measured = false;
  for (const TimelineRow& row : chart.rows) {
    measured = measured || (row.measured && !row.bars.empty());
    for (const TimelineBar& bar : row.bars) {
      if (!bar.bound) continue;
      gap = true;
      add_to_legend(scene, {"set by " + legend_text(bar.colour.role), bar.colour, Swatch::fill});
    }
  }
  if (gap) add_to_legend(scene, {"launch gap", {ColourRole::gap, 0}, Swatch::fill});
  if (measured) add_to_legend(scene, {"measured", {ColourRole::neutral, 0}, Swatch::hatched});
}

}  // namespace

Scene timeline_scene(const TimelineChart& chart, const std::vector<RunRow>& rows) {
  Scene scene;
  scene.title = chart.align == Align::start ? "Kernels in order of launch"
                                            : "Kernels in order of launch, aligned by shared work";
  double most = 0;
  for (std::size_t i = 0; i < chart.rows.size(); ++i) {
    const TimelineRow& row = chart.rows[i];
    const double at = static_cast<double>(i);
    const std::string label = label_of(row.label, row.machine);
    Row out{.at = at,
            .text = label,
            .result = row.total.value() > 0 ? short_time(row.total) : "",
            .note = row.note,
            .tooltip = label + "\n" + (row.note.empty() ? short_time(row.total) : row.note),
            .thing = run_thing(row.run)};
    const auto known = std::ranges::find(rows, row.run, &RunRow::id);
    if (known != rows.end()) {
      out.strong = known->is_baseline;
      out.result_note = known->is_baseline ? "baseline" : known->time_delta.relative_text;
      out.note_colour =
          known->is_baseline ? Colour{ColourRole::muted, 0} : known->time_delta.colour;
      if (!known->time_delta.absolute_text.empty()) {
        out.tooltip += "\n" + known->time_delta.absolute_text + " to the baseline";
      }
    }
    if (row.measured && row.note.empty() && row.unattributed.value() != 0) {
      out.tooltip += "\n" + signed_time(row.unattributed) +
                     " between the block's time and the sum of its kernels, timed one by one";
    }
    scene.rows.push_back(std::move(out));
    for (const TimelineBar& bar : row.bars) {
      add_bar(scene, row, bar, at);
      most = std::max(most, to_us(bar.begin + bar.length));
    }
    if (!row.sums_up.empty()) {
      if (chart.align == Align::start) add_replayed(scene, row, at);
      scene.footnote += (scene.footnote.empty() ? "" : "\n") + row.sums_up;
    }
  }
  add_legend(scene, chart);
  scene.x = {.label = "µs", .range = snug_range(most, to_us(chart.axis_high))};
  scene.y = row_axis(chart.rows.size());
  return scene;
}

Scene residency_scene(const std::vector<ResidencyChart>& charts,
                      const std::vector<std::string>& names, const std::vector<Colour>& colours,
                      Range axis) {
  Scene scene;
  std::vector<std::pair<std::string, std::string>> reasons;  // with the runs that they hold for
  double high = axis.high;
  for (std::size_t c = 0; c < charts.size(); ++c) {
    const ResidencyChart& chart = charts[c];
    if (scene.title.empty()) scene.title = chart.tensor + " in L2";
    if (chart.steps.empty()) {
      const auto known =
          std::ranges::find(reasons, chart.note, [](const auto& r) { return r.first; });
      if (known == reasons.end()) {
        reasons.emplace_back(chart.note, names[c]);
      } else {
        known->second += ", " + names[c];
      }
      continue;
    }
    if (chart.bytes > Bytes(0)) {
      scene.title = chart.tensor + " in L2, % of " + short_bytes(chart.bytes);
    }
    Mark curve{.shape = Shape::curve,
               .colour = colours[c],
               .tooltip = names[c],
               .thing = run_thing(chart.run)};
    for (const ResidencyStep& s : chart.steps) {
      const double begin = to_us(s.begin), end = to_us(s.end), level = 100 * s.fraction;
      high = std::max(high, end);
      curve.path.push_back({begin, level});
      curve.path.push_back({end, level});
      if (!s.alive || s.fraction <= 0) continue;
      scene.marks.push_back({.shape = Shape::area,
                             .path = {{begin, 0}, {begin, level}, {end, level}, {end, 0}},
                             .colour = colours[c],
                             .quiet = true,
                             .tooltip = names[c] + "\n" + s.tooltip});
    }
    scene.marks.push_back(std::move(curve));
    scene.legend.push_back({names[c], colours[c], Swatch::line});
  }
  std::string notes;
  for (const auto& [reason, runs] : reasons) {
    notes += (notes.empty() ? "" : "; ") + runs + ": " + reason;
  }
  if (scene.legend.empty()) return empty_scene(scene.title, notes);
  scene.legend.push_back(
      {"filled: made, and still to be used", {ColourRole::muted, 0}, Swatch::fill});
  scene.footnote = notes;
  scene.x = {.label = "µs", .range = {0, high}};
  scene.y = {.label = {}, .range = {0, 105}, .zooms = false};
  return scene;
}

}  // namespace fuseline::gui
