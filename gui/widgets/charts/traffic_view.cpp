#include "gui/widgets/charts/traffic_view.h"

#include <QComboBox>
#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr double kHalfBar = 0.38;          // of a bar's height; rows are 1 apart
constexpr double kBetweenPolicies = 0.35;  // more between policies

std::string bar_tooltip(const TrafficBar& bar) {
  std::string text =
      label_of(bar.label, bar.machine) + (bar.measured ? " (measured)\n" : " (predicted)\n");
  if (!bar.note.empty()) return text + bar.note;
  text += exact_bytes(bar.total);
  if (!bar.is_baseline && !bar.delta.relative_text.empty()) {
    text += "\n" + bar.delta.absolute_text + " (" + bar.delta.relative_text + ") to the baseline";
    if (bar.like_for_like) text += ", replays beside replays";
  }
  return text;
}

}  // namespace

Scene traffic_scene(const TrafficChart& chart) {
  Scene scene;
  scene.title = chart.title;
  double at = 0;
  bool any_measured = false;
  double most = chart.limit.as_double();
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const TrafficBar& bar = chart.bars[i];
    if (i > 0)
      at +=
          chart.bars[i - 1].policy == bar.policy ? 1 - kBetweenPolicies / 3 : 1 + kBetweenPolicies;
    Row row{.at = at,
            .text = label_of(bar.label, bar.machine),
            .strong = bar.is_baseline,
            .note = bar.note,
            .tooltip = bar_tooltip(bar),
            .thing = run_thing(bar.run)};
    if (bar.note.empty()) {
      row.result = short_bytes(bar.total);
      row.result_note = bar.is_baseline ? "baseline" : bar.delta.relative_text;
      row.note_colour = bar.is_baseline ? Colour{ColourRole::muted, 0} : bar.delta.colour;
    }
    scene.rows.push_back(std::move(row));
    most = std::max(most, bar.total.as_double());
    for (const BarPart& part : bar.parts) {
      Mark mark{.shape = Shape::bar,
                .from = {part.from.as_double(), at - kHalfBar},
                .to = {(part.from + part.bytes).as_double(), at + kHalfBar},
                .colour = part.colour,
                .measured = bar.measured,
                .label = part.label,
                .tooltip = part.tooltip,
                .thing = part.thing};
      scene.marks.push_back(std::move(mark));
      const std::string text = legend_text(part.colour.role);
      if (!text.empty()) add_to_legend(scene, {text, {part.colour.role, 0}, Swatch::fill});
    }
    any_measured = any_measured || (bar.measured && bar.note.empty());
  }
  if (any_measured) {
    add_to_legend(scene, {"measured", {ColourRole::measured, 0}, Swatch::hatched});
  }
  const double top = -0.5;
  if (chart.limit > Bytes(0)) {
    const double x = chart.limit.as_double();
    scene.marks.push_back(
        {.shape = Shape::line,
         .from = {x, top},
         .to = {x, at + 0.5},
         .colour = {ColourRole::limit, 0},
         .label = chart.limit_label,
         .tooltip = "the least through HBM: weights and caches once, and what L2 cannot hold\n" +
                    exact_bytes(chart.limit)});
  }
  scene.x = {.label = chart.axis_label, .range = snug_range(most, chart.axis_high), .unit = 1e6};
  scene.y = {.label = {}, .range = {top, at + 0.5}, .zooms = false};
  return scene;
}

TrafficView::TrafficView(Workbench& bench, QWidget* parent) : ChartView(bench, parent) {
  by_ = &add_choice(tr("Stacked by"), {tr("kernel"), tr("tensor")},
                    tr("what the parts of a bar are: launches in their order, or tensors"));
  add_plot(1);
  connect(by_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] { refresh(); });
}

QString TrafficView::hint() const {
  return tr(
      "Bytes that each run reads from and writes to HBM. Hover a part for its exact bytes; "
      "click selects it in all views; drag to zoom, double-click to go back.");
}

void TrafficView::stack_by(StackBy by) { by_->setCurrentIndex(static_cast<int>(by)); }

void TrafficView::refresh() {
  chart_ = traffic_chart(bench().results(), static_cast<StackBy>(by_->currentIndex()));
  const std::string problem = problem_of(bench().results());
  plots().front()->set_scene(problem.empty() ? traffic_scene(chart_)
                                             : empty_scene(chart_.title, problem));
}

std::vector<Table> TrafficView::tables() const { return {to_table(chart_)}; }

}  // namespace fuseline::gui
