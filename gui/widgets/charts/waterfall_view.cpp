#include "gui/widgets/charts/waterfall_view.h"

#include <QComboBox>
#include <QSignalBlocker>
#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr double kHalfStep = 0.36;

// The launch of the target that holds the step's operators; else the first of them.
Thing thing_of(const WaterfallStep& step, const RunView& target) {
  if (step.kind == StepKind::total) {
    return step.label == target.run.name ? run_thing(target.run.id) : Thing{};
  }
  if (step.operators.empty()) return {};
  const RunResult& r = *target.result;
  for (std::size_t i = 0; i < r.kernels.size(); ++i) {
    if (!r.kernels[i].plan_kernel) continue;
    for (const OpId id : r.plan->kernels[*r.kernels[i].plan_kernel].ops) {
      if (r.plan->graph.op(id).name == step.operators.front()) {
        return kernel_thing(target.run.id, i);
      }
    }
  }
  return op_thing(step.operators.front());
}

}  // namespace

Scene waterfall_scene(const Waterfall& chart, const RunView& target) {
  if (!chart.problem.empty()) return empty_scene(chart.title, chart.problem);
  Scene scene;
  scene.title = chart.title;
  double most = 0;
  for (std::size_t i = 0; i < chart.steps.size(); ++i) {
    const WaterfallStep& step = chart.steps[i];
    const double at = static_cast<double>(i);
    const bool total = step.kind == StepKind::total;
    const Thing thing = thing_of(step, target);
    Row row{.at = at,
            .text = step.label,
            .strong = total,
            .result = total ? short_bytes(step.after) : signed_bytes(step.after - step.before),
            .result_note = total ? short_time(step.time_after)
                                 : signed_time(step.time_after - step.time_before),
            .note_colour = {ColourRole::muted, 0},
            .tooltip = step.tooltip,
            .thing = thing};
    scene.rows.push_back(std::move(row));
    const auto [low, high] = std::minmax({step.before.as_double(), step.after.as_double()});
    most = std::max(most, high);
    scene.marks.push_back({.shape = Shape::bar,
                           .from = {low, at - kHalfStep},
                           .to = {high, at + kHalfStep},
                           .colour = step.colour,
                           .tooltip = step.tooltip,
                           .thing = thing,
                           .operators = step.operators});
    if (i + 1 < chart.steps.size()) {
      const double x = step.after.as_double();
      scene.marks.push_back({.shape = Shape::line,
                             .from = {x, at + kHalfStep},
                             .to = {x, at + 1 - kHalfStep},
                             .colour = {ColourRole::muted, 0},
                             .quiet = true});
    }
    switch (step.kind) {
      case StepKind::total:
        add_to_legend(scene, {"HBM traffic", step.colour, Swatch::fill});
        break;
      case StepKind::limit:
        add_to_legend(scene, {"above the least through HBM", step.colour, Swatch::fill});
        break;
      default:
        add_to_legend(scene, {step.colour.role == ColourRole::worse ? "adds" : "saves", step.colour,
                              Swatch::fill});
    }
  }
  scene.x = {
      .label = "MB read and written", .range = snug_range(most, chart.axis_high), .unit = 1e6};
  scene.y = row_axis(chart.steps.size());
  return scene;
}

WaterfallView::WaterfallView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      target_(&add_choice(tr("Down to"), {}, tr("the prediction that the steps lead to"))),
      work_(
          this,
          [](const RunView& target, const std::stop_token& stop, const Progress& progress) {
            return waterfall(target, stop, progress);
          },
          {.done =
               [this](Waterfall chart) {
                 chart_ = std::move(chart);
                 plots().front()->set_scene(waterfall_scene(chart_, view_));
               },
           .failed =
               [this](const std::string& why) {
                 chart_ = {};
                 plots().front()->set_scene(empty_scene(title().toStdString(), why));
               },
           .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("simulating")); }}) {
  add_plot(1);
  connect(target_, QOverload<int>::of(&QComboBox::activated), this, [this] { start(); });
}

QString WaterfallView::hint() const {
  return tr(
      "What each fusion saves on the way from textbook execution to a policy, and how far "
      "the policy stays above what any fusion could reach.");
}

// Keeps the chosen run while it is there; else the shown one, else the last prediction.
void WaterfallView::fill_targets() {
  const QSignalBlocker quiet(target_);
  const QVariant before = target_->currentData();
  target_->clear();
  int chosen = -1, shown = -1;
  for (const RunView& view : bench().results().runs) {
    if (!view.ok() || view.run.is_measurement()) continue;
    if (before == QVariant(view.run.id.value)) chosen = target_->count();
    if (view.run.id == bench().shown_run() && view.run.id != bench().results().baseline) {
      shown = target_->count();
    }
    target_->addItem(QString::fromStdString(view.label()), view.run.id.value);
  }
  target_->setCurrentIndex(chosen >= 0 ? chosen : shown >= 0 ? shown : target_->count() - 1);
}

void WaterfallView::refresh() {
  fill_targets();
  start();
}

void WaterfallView::start() {
  const RunView* view = target_->count() > 0
                            ? bench().results().find(RunId{target_->currentData().toInt()})
                            : nullptr;
  if (view == nullptr) {
    work_.cancel();
    shown_.reset();
    chart_ = {};
    const std::string why = problem_of(bench().results());
    plots().front()->set_scene(empty_scene(
        title().toStdString(), why.empty() ? "only measured runs: add a prediction" : why));
    return;
  }
  if (view->result == shown_) return;
  shown_ = view->result;
  view_ = *view;
  if (chart_.steps.empty()) {
    plots().front()->set_scene(empty_scene(title().toStdString(), "simulating each step"));
  }
  work_.start(*view);
}

void WaterfallView::finish() { work_.finish(); }

void WaterfallView::cancel() {
  work_.cancel();
  shown_.reset();
  if (chart_.steps.empty()) {
    plots().front()->set_scene(empty_scene(title().toStdString(), "cancelled: choose a run"));
  }
}

std::vector<Table> WaterfallView::tables() const {
  return chart_.steps.empty() ? std::vector<Table>{} : std::vector<Table>{to_table(chart_)};
}

}  // namespace fuseline::gui
