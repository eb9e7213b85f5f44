#include "gui/widgets/charts/roofline_view.h"

#include <QCheckBox>
#include <algorithm>
#include <set>

#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

// Points of the whole block are as large as the part of time that they stand for would be.
constexpr double kBlockSize = 0.35;
constexpr std::size_t kNamedOutside = 4;
constexpr std::size_t kMostNamed = 6;  // runs

using RunsToName = std::set<RunId>;

void add_ceilings(Scene& scene, const RooflineChart& chart) {
  for (const Ceiling& c : chart.ceilings) {
    scene.marks.push_back({.shape = Shape::line,
                           .from = c.from,
                           .to = c.to,
                           .colour = c.colour,
                           .dashed = c.sustained,
                           .quiet = true,
                           .label = c.label,
                           .tooltip = c.tooltip});
  }
}

void add_arrows(Scene& scene, const RooflineChart& chart, const Results& results, bool kernels,
                const RunsToName& detailed) {
  for (const RooflineArrow& a : chart.arrows) {
    if (!a.is_block && (!kernels || !detailed.contains(a.run))) continue;
    const RunView* run = results.find(a.run);
    const std::string who = run == nullptr ? "" : run->label();
    Mark mark{.shape = Shape::arrow,
              .from = a.from,
              .to = a.to,
              .colour = {ColourRole::muted, 0},
              .quiet = !a.is_block,
              .tooltip = who + " is " + a.label + " than the baseline"};
    for (const RooflinePoint& p : chart.points) {
      if (p.run == a.run && p.is_block == a.is_block && p.at == a.to) {
        mark.thing = p.thing;
        if (a.is_block) mark.colour = p.colour;
        if (!a.is_block) mark.tooltip = p.label + " of " + mark.tooltip;
      }
    }
    scene.marks.push_back(std::move(mark));
  }
}

// Of blocks with the ratio, which their arrow alone has no room for. Of many runs only those that
// the picture is about: blocks lie so close together that more names would hide them.
std::string point_label(const RooflineChart& chart, const RooflinePoint& p,
                        const RunsToName& named) {
  if (!p.is_block) return p.measured ? "" : p.label;
  if (!named.contains(p.run)) return {};
  for (const RooflineArrow& a : chart.arrows) {
    if (a.is_block && a.run == p.run) return p.label + ": " + a.label;
  }
  return p.label;
}

// The baseline, the shown run and the fastest; all of them where they are few.
RunsToName runs_to_name(const RooflineChart& chart, const Results& results, RunId shown) {
  RunsToName all, some{results.baseline, shown};
  const RooflineArrow* fastest = nullptr;
  for (const RooflinePoint& p : chart.points) all.insert(p.run);
  for (const RooflineArrow& a : chart.arrows) {
    if (a.is_block && (fastest == nullptr || a.ratio > fastest->ratio)) fastest = &a;
  }
  if (fastest != nullptr) some.insert(fastest->run);
  return all.size() <= kMostNamed ? all : some;
}

// Whose kernels are drawn: of many runs those of the baseline and of the shown one, as points of
// ten policies lie on each other.
RunsToName runs_with_kernels(const RooflineChart& chart, RunId baseline, RunId shown) {
  RunsToName all;
  for (const RooflinePoint& p : chart.points) all.insert(p.run);
  return all.size() <= kMostNamed ? all : RunsToName{baseline, shown};
}

// Which line is whose, where there is more than one machine.
void add_machines(Scene& scene, const RooflineChart& chart) {
  for (const Ceiling& c : chart.ceilings) {
    if (c.sustained || c.machine == chart.ceilings.front().machine) continue;
    add_to_legend(scene, {"roofs of " + chart.ceilings.front().machine,
                          chart.ceilings.front().colour, Swatch::line});
    add_to_legend(scene, {"roofs of " + c.machine, c.colour, Swatch::line});
  }
}

std::string not_compared(const RooflineChart& chart) {
  std::string names;
  for (const std::string& name : chart.not_compared) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? ""
                       : "Not compared with the baseline, which computes another block: " + names;
}

std::string not_on_axes(const RooflineChart& chart, bool kernels) {
  if (!kernels || chart.outside.empty()) return {};
  std::vector<std::string> names;
  for (const RooflinePoint& p : chart.outside) {
    if (std::ranges::find(names, p.label) == names.end()) names.push_back(p.label);
  }
  std::string text = "Not on the axes, as they move no counted bytes or do no counted FLOPs: ";
  for (std::size_t i = 0; i < std::min(names.size(), kNamedOutside); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kNamedOutside) {
    text += " and " + std::to_string(names.size() - kNamedOutside) + " more";
  }
  return text;
}

}  // namespace

Scene roofline_scene(const RooflineChart& chart, const Results& results, bool kernels,
                     RunId shown) {
  const RunsToName named = runs_to_name(chart, results, shown);
  Scene scene;
  scene.title = chart.title;
  scene.x = {.label = chart.x_label, .range = chart.x, .log = true};
  scene.y = {.label = chart.y_label, .range = chart.y, .log = true};
  add_ceilings(scene, chart);
  const RunsToName detailed = runs_with_kernels(chart, results.baseline, shown);
  add_arrows(scene, chart, results, kernels, detailed);
  bool any_measured = false;
  // Small points over large ones, so that both can be hovered; blocks over kernels.
  std::vector<const RooflinePoint*> points;
  for (const RooflinePoint& p : chart.points) {
    if (p.is_block || (kernels && detailed.contains(p.run))) points.push_back(&p);
  }
  std::ranges::stable_sort(points, [](const RooflinePoint* a, const RooflinePoint* b) {
    return a->is_block != b->is_block ? !a->is_block : a->size > b->size;
  });
  for (const RooflinePoint* p : points) {
    scene.marks.push_back(
        {.shape = p->is_block ? Shape::diamond : Shape::point,
         .from = p->at,
         .colour = p->colour,
         .measured = p->measured,
         .size = p->is_block ? kBlockSize : p->size,
         .label = point_label(chart, *p, named),
         .label_rank = p->is_block ? (p->measured ? 90 : 100) : static_cast<int>(49 * p->size),
         .tooltip = p->tooltip,
         .thing = p->thing});
    any_measured = any_measured || p->measured;
    if (!p->is_block) {
      add_to_legend(scene, {legend_text(p->colour.role), {p->colour.role, 0}, Swatch::dot});
    }
  }
  add_machines(scene, chart);
  add_to_legend(scene, {"whole block", {ColourRole::text, 0}, Swatch::diamond});
  if (any_measured) add_to_legend(scene, {"measured", {ColourRole::measured, 0}, Swatch::hollow});
  add_to_legend(scene, {"from the baseline", {ColourRole::muted, 0}, Swatch::arrow});
  scene.footnote = not_compared(chart);
  const std::string outside = not_on_axes(chart, kernels);
  scene.footnote += (scene.footnote.empty() || outside.empty() ? "" : "\n") + outside;
  const bool some = std::ranges::any_of(
      chart.points, [&](const RooflinePoint& p) { return !detailed.contains(p.run); });
  if (kernels && some)
    scene.footnote += (scene.footnote.empty() ? "" : "\n") +
                      std::string(
                          "Kernels of the baseline and of the shown run; of the others the "
                          "whole block.");
  return scene;
}

RooflineView::RooflineView(Workbench& bench, QWidget* parent, MemoryLevel level)
    : ChartView(bench, parent), level_(level), kernels_(new QCheckBox(tr("Kernels"), this)) {
  kernels_->setChecked(true);
  kernels_->setToolTip(tr("show each kernel, not only whole blocks"));
  controls().insertWidget(0, kernels_);
  add_plot(1);
  connect(kernels_, &QCheckBox::toggled, this, [this] { refresh(); });
}

QString RooflineView::id() const {
  return level_ == MemoryLevel::hbm ? QStringLiteral("roofline-hbm")
                                    : QStringLiteral("roofline-l2");
}

QString RooflineView::title() const {
  return level_ == MemoryLevel::hbm ? tr("Roofline, HBM") : tr("Roofline, L2");
}

QString RooflineView::hint() const {
  return tr(
      "Below the slope the memory level limits, below the roof the tensor cores. Each GPU has its "
      "own roofs. Axes follow from the GPUs alone, so pictures of several sessions compare. The "
      "area of a point "
      "is its part of the block's time.");
}

void RooflineView::refresh() {
  chart_ = roofline_chart(bench().results(), level_);
  const std::string problem = problem_of(bench().results());
  plots().front()->set_scene(
      problem.empty()
          ? roofline_scene(chart_, bench().results(), kernels_->isChecked(), bench().shown_run())
          : empty_scene(title().toStdString(), problem));
}

std::vector<Table> RooflineView::tables() const { return {to_table(chart_, bench().results())}; }

}  // namespace fuseline::gui
