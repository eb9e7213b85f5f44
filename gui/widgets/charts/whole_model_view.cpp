#include "gui/widgets/charts/whole_model_view.h"

#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <algorithm>

#include "base/error.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr int kModelCalmMs = 300;  // after the last change, before work begins
constexpr double kHalfRow = 0.36;
constexpr double kMostPrice = 1000;  // an hour

}  // namespace

QDoubleSpinBox* price_box(QWidget* parent) {
  auto* box = new QDoubleSpinBox(parent);
  box->setObjectName("price");
  box->setRange(0, kMostPrice);
  box->setDecimals(2);
  box->setSingleStep(0.1);
  box->setSpecialValueText(QObject::tr("none"));
  box->setKeyboardTracking(false);
  box->setAccessibleName(QObject::tr("price of the GPU an hour"));
  box->setToolTip(QObject::tr("what the GPU costs an hour, in any currency: tokens cost then"));
  return box;
}

std::optional<MoneyPerHour> price_of(const QDoubleSpinBox& box) {
  return box.value() > 0 ? std::optional(MoneyPerHour(box.value())) : std::nullopt;
}

Scene whole_model_scene(const WholeModel& chart, const Results& results) {
  if (!chart.problem.empty()) return empty_scene(chart.title, chart.problem);
  Scene scene;
  scene.title = chart.title + ": one prefill, one step of decode";
  double at = 0, most = 0;
  for (const ModelRow& row : chart.rows) {
    for (const ModelStep& step : row.steps) {
      Row out{.at = at,
              .text = row.label + ", " + step.what,
              .strong = row.run == results.baseline,
              .note = step.problem,
              .tooltip = step.problem,
              .thing = run_thing(row.run)};
      if (step.problem.empty()) {
        out.result = short_time(step.time);
        out.result_note =
            step.cost ? cost_text(*step.cost) : tokens_per_second_text(step.tokens_per_second);
        out.note_colour = {ColourRole::muted, 0};
        out.tooltip = row.label + ", " + step.what + "\n" + short_time(step.time) + ", " +
                      tokens_per_second_text(step.tokens_per_second);
        if (step.cost) out.tooltip += "\n" + cost_text(*step.cost);
      }
      scene.rows.push_back(std::move(out));
      double from = 0;
      for (const StepPart& part : step.parts) {
        const double to = from + to_us(part.time) / 1000;
        scene.marks.push_back({.shape = Shape::bar,
                               .from = {from, at - kHalfRow},
                               .to = {to, at + kHalfRow},
                               .colour = part.colour,
                               .label = part.label,
                               .tooltip = part.tooltip,
                               .thing = run_thing(row.run)});
        add_to_legend(scene, {part.label, part.colour, Swatch::fill});
        from = to;
      }
      most = std::max(most, from);
      ++at;
    }
  }
  // Steps of the same kind compare; a prefill makes a decode step look like nothing.
  scene.x = {.label = "ms", .range = snug_range(most, nice_above(most * 1.02))};
  scene.y = row_axis(scene.rows.size());
  return scene;
}

Scene memory_scene(const WholeModel& chart) {
  if (!chart.problem.empty()) return empty_scene("Does it fit", chart.problem);
  Scene scene;
  scene.title = "Does it fit in the GPU's memory";
  double at = 0, most = 0, capacity = 0;
  for (const ModelRow& row : chart.rows) {
    for (std::size_t i = 0; i < row.steps.size(); ++i) {
      const MemoryBar& bar = row.memory[i];
      if (!row.steps[i].problem.empty()) continue;
      Row out{.at = at,
              .text = row.label + ", " + row.steps[i].what,
              .result = short_bytes(bar.total),
              .result_note = bar.fits ? "fits" : "does not fit",
              .note_colour = {bar.fits ? ColourRole::better : ColourRole::worse, 3},
              .tooltip = bar.verdict,
              .thing = run_thing(row.run)};
      if (bar.longest) {
        out.tooltip +=
            "\nlongest context that fits with this batch: " + std::to_string(*bar.longest) +
            " tokens";
      }
      double from = 0;
      for (const NeedPart& part : bar.parts) {
        const double to = from + part.bytes.as_double();
        scene.marks.push_back({.shape = Shape::bar,
                               .from = {from, at - kHalfRow},
                               .to = {to, at + kHalfRow},
                               .colour = part.colour,
                               .label = part.label,
                               .tooltip = part.label + "\n" + exact_bytes(part.bytes),
                               .thing = run_thing(row.run)});
        add_to_legend(scene, {part.label, part.colour, Swatch::fill});
        from = to;
      }
      capacity = std::max(capacity, bar.capacity.as_double());
      most = std::max({most, from, capacity});
      scene.rows.push_back(std::move(out));
      ++at;
    }
  }
  if (scene.rows.empty()) return empty_scene(scene.title, "nothing could be predicted");
  scene.marks.push_back(
      {.shape = Shape::line,
       .from = {capacity, -0.5},
       .to = {capacity, at - 0.5},
       .colour = {ColourRole::limit, 0},
       .label = short_bytes(Bytes(static_cast<std::int64_t>(capacity))) + " of memory",
       .tooltip = "the GPU's memory; what drivers and libraries keep, 0.5 GB and "
                  "more, is not counted"});
  scene.x = {.label = "GB", .range = snug_range(most, nice_above(most * 1.02)), .unit = 1e9};
  scene.y = row_axis(scene.rows.size());
  return scene;
}

WholeModelView::WholeModelView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      price_(price_box(this)),
      work_(
          this,
          [](const WholeModelRequest& request, const std::stop_token& stop,
             const Progress& progress) { return whole_model_chart(request, stop, progress); },
          {.done =
               [this](WholeModel chart) {
                 chart_ = std::move(chart);
                 draw();
               },
           .failed = [this](const std::string& why) { show_text(why); },
           .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("simulating")); }}) {
  controls().insertWidget(0, new QLabel(tr("Price an hour"), this));
  controls().insertWidget(1, price_);
  connect(price_, QOverload<double>::of(&QDoubleSpinBox::valueChanged), this, [this] { start(); });
  add_plot(1);
  add_plot(1);
  soon_.setSingleShot(true);
  soon_.setInterval(kModelCalmMs);
  connect(&soon_, &QTimer::timeout, this, [this] { start(); });
  show_text("not computed yet");
}

QString WholeModelView::hint() const {
  return tr(
      "Above: the time of the whole model for the prompt and for one new token of every sequence, "
      "with embedding and LM head. Below: weights, cache and activations beside the GPU's memory.");
}

void WholeModelView::refresh() { soon_.start(); }

void WholeModelView::start() {
  soon_.stop();
  WholeModelRequest request{bench().document().setup, {}, price_of(*price_)};
  for (const Run& run : bench().document().runs.all())
    if (!run.is_measurement()) request.runs.push_back(run);
  if (asked_ && *asked_ == request) {
    if (!work_.is_busy() && !chart_.rows.empty()) draw();  // the baseline may have changed
    return;
  }
  asked_ = request;
  if (chart_.rows.empty()) show_text("simulating the whole model");
  work_.start(std::move(request));
}

void WholeModelView::draw() {
  plots()[0]->set_scene(whole_model_scene(chart_, bench().results()));
  plots()[1]->set_scene(memory_scene(chart_));
}

void WholeModelView::show_text(const std::string& text) {
  chart_ = {};
  plots()[0]->set_scene(empty_scene(title().toStdString(), text));
  plots()[1]->set_scene(empty_scene("Does it fit in the GPU's memory", text));
}

void WholeModelView::finish() {
  start();
  work_.finish();
}

void WholeModelView::cancel() {
  soon_.stop();
  work_.cancel();
  asked_.reset();
}

std::vector<Table> WholeModelView::tables() const {
  return chart_.rows.empty() ? std::vector<Table>{} : std::vector<Table>{to_table(chart_)};
}

}  // namespace fuseline::gui
