#include "gui/widgets/charts/sweep_view.h"

#include <QComboBox>
#include <QLabel>
#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/chart_colours.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr int kLargestSize = 1 << 24;
constexpr int kCalmMs = 400;       // after the last change, before a sweep begins
constexpr double kPadding = 1.12;  // of the axis beyond the first and last value

// Equal keys mean equal sweeps.
std::string key_of(const SweepRequest& request) {
  std::string key = cache_key(request.setup) + "|" + name_of(request.axis);
  for (const std::int64_t value : request.values) key += "," + std::to_string(value);
  for (const Run& run : request.runs) {
    key += "|" + run.name + "," + run.policy;
    for (const std::string& rewrite : run.custom.rewrites) key += "," + rewrite;
    for (const OnChipEdge& edge : run.custom.on_chip) key += "," + edge_text(edge);
  }
  return key;
}

void add_crossovers(Scene& scene, const SweepChart& chart) {
  for (const Crossover& c : chart.crossovers) {
    const double us = to_us(c.time);
    scene.marks.push_back({.shape = Shape::line,
                           .from = {c.at, scene.y.range.low},
                           .to = {c.at, us},
                           .colour = {ColourRole::muted, 0},
                           .dashed = true,
                           .quiet = true,
                           .tooltip = c.text});
    scene.marks.push_back({.shape = Shape::diamond,
                           .from = {c.at, us},
                           .colour = {ColourRole::limit, 0},
                           .size = 0.2,
                           .label = name_of(chart.axis) + (" ≈ " + grouped(std::llround(c.at))),
                           .label_rank = 90,
                           .tooltip = c.text + "\n" + short_time(c.time)});
  }
  if (!chart.crossovers.empty()) {
    scene.legend.push_back({"crossover", {ColourRole::limit, 0}, Swatch::diamond});
  }
}

}  // namespace

Scene sweep_scene(const SweepChart& chart, SweepQuantity quantity,
                  const std::vector<std::pair<RunId, Colour>>& runs) {
  const bool time = quantity == SweepQuantity::time;
  Scene scene;
  scene.title = std::string(time ? "Time over " : "HBM traffic over ") + name_of(chart.axis);
  scene.x = {.label = chart.x_label,
             .range = {chart.x.low / kPadding, chart.x.high * kPadding},
             .log = true};
  scene.y = {
      .label = time ? "µs" : "bytes", .range = time ? chart.time_us : chart.hbm_bytes, .log = true};
  std::string problem;
  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const SweepCurve& curve = chart.curves[i];
    const Colour colour = i < runs.size() ? runs[i].second : curve.colour;
    const Thing thing = i < runs.size() ? run_thing(runs[i].first) : Thing{};
    Mark line{.shape = Shape::curve, .colour = colour, .tooltip = curve.label, .thing = thing};
    std::vector<Mark> points;
    for (const SweepPoint& p : curve.points) {
      if (!p.problem.empty()) {
        if (problem.empty()) problem = curve.label + ": " + p.problem;
        continue;
      }
      const Point at{static_cast<double>(p.value), time ? to_us(p.time) : p.hbm.as_double()};
      line.path.push_back(at);
      points.push_back({.shape = Shape::point,
                        .from = at,
                        .colour = colour,
                        .tooltip = p.tooltip,
                        .thing = thing});
    }
    if (line.path.empty()) continue;
    scene.marks.push_back(std::move(line));
    scene.marks.insert(scene.marks.end(), points.begin(), points.end());
    scene.legend.push_back({curve.label, colour, Swatch::line});
  }
  if (scene.marks.empty()) return empty_scene(scene.title, problem);
  for (const SweepPoint& p : chart.curves.front().points) {
    scene.x.ticks.push_back({static_cast<double>(p.value), grouped(p.value)});
  }
  if (time) add_crossovers(scene, chart);
  scene.footnote = problem.empty() ? "" : "Left out: " + problem;
  if (time) {
    for (const Crossover& c : chart.crossovers) {
      scene.footnote += (scene.footnote.empty() ? "" : "; ") + c.text;
    }
  }
  return scene;
}

SweepView::SweepView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      axis_(&add_choice(tr("Over"), {tr("tokens T"), tr("context S"), tr("batch B"), tr("width D")},
                        tr("the size that is swept; all others are as in the session"))),
      work_(
          this,
          [](const SweepRequest& request, const std::stop_token& stop, const Progress& progress) {
            return sweep(request, stop, progress);
          },
          {.done =
               [this](SweepChart chart) {
                 chart_ = std::move(chart);
                 draw();
               },
           .failed = [this](const std::string& why) { show_text(why); },
           .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("simulating")); }}) {
  from_ = &add_end(tr("from"), tr("the smallest value; the range starts again with another size"));
  to_ = &add_end(tr("to"), tr("the largest value"));
  add_plot(1, true);
  add_plot(1, true);
  soon_.setSingleShot(true);
  soon_.setInterval(kCalmMs);
  connect(&soon_, &QTimer::timeout, this, [this] { start(); });
  connect(axis_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] {
    range_of_.clear();
    start();
  });
  show_text("not swept yet");
}

QString SweepView::hint() const {
  return tr(
      "Each prediction's time and HBM bytes over one size, with everything else as in the "
      "session. Diamonds mark where one policy overtakes another.");
}

QSpinBox& SweepView::add_end(const QString& label, const QString& tip) {
  auto* box = new QSpinBox(this);
  box->setRange(1, kLargestSize);
  box->setGroupSeparatorShown(true);
  box->setKeyboardTracking(false);
  box->setToolTip(tip);
  box->setAccessibleName(label);
  auto* text = new QLabel(label, this);
  text->setBuddy(box);
  const int before_stretch = controls().count() - 3;
  controls().insertWidget(before_stretch, text);
  controls().insertWidget(before_stretch + 1, box);
  connect(box, QOverload<int>::of(&QSpinBox::valueChanged), this, [this] {
    range_of_ = range_key();  // chosen by a person
    soon_.start();
  });
  return *box;
}

// What a range is chosen for.
std::string SweepView::range_key() const {
  const Setup& setup = bench().document().setup;
  return std::string(name_of(static_cast<SweepAxis>(axis_->currentIndex()))) +
         name_of(setup.workload.phase) + setup.model;
}

// The usual range of the axis, phase and model until a person chooses another one.
void SweepView::fill_range(const SweepRequest& request) {
  const std::string of = range_key();
  if (of == range_of_) return;
  range_of_ = of;
  const std::vector<std::int64_t> usual = default_values(request.setup, request.axis);
  const QSignalBlocker quiet_from(from_), quiet_to(to_);
  from_->setValue(static_cast<int>(usual.front()));
  to_->setValue(static_cast<int>(usual.back()));
}

void SweepView::sweep_range(int from, int to) {
  from_->setValue(from);
  to_->setValue(to);
}

void SweepView::sweep_over(SweepAxis axis) { axis_->setCurrentIndex(static_cast<int>(axis)); }

void SweepView::refresh() { soon_.start(); }

void SweepView::show_text(const std::string& text) {
  chart_ = {};
  plots()[0]->set_scene(empty_scene("Time", text));
  plots()[1]->set_scene(empty_scene("HBM traffic", text));
}

void SweepView::start() {
  soon_.stop();
  SweepRequest request;
  request.setup = bench().document().setup;
  request.axis = static_cast<SweepAxis>(axis_->currentIndex());
  for (const Run& run : bench().document().runs.all()) {
    if (!run.is_measurement() && !run.setup) request.runs.push_back(run);
  }
  if (request.runs.empty()) {
    work_.cancel();
    show_text("only measured runs: add a prediction to sweep");
    return;
  }
  try {
    if (request.axis == SweepAxis::context && request.setup.workload.phase != Phase::decode) {
      throw InputError(
          {.field = "S", .message = "context is swept in decode only: choose phase decode"});
    }
    fill_range(request);
    request.values = default_values(request.setup, request.axis);
    if (from_->value() != request.values.front() || to_->value() != request.values.back())
      request.values = values_between(request.setup, request.axis, from_->value(), to_->value());
  } catch (const InputError& error) {
    work_.cancel();
    asked_.clear();
    show_text(error.what());
    return;
  }
  const std::string key = key_of(request);
  if (key == asked_) {
    if (!work_.is_busy() && !chart_.curves.empty()) draw();  // colours may have changed
    return;
  }
  asked_ = key;
  request_ = request;
  if (chart_.curves.empty()) show_text("simulating each size");
  work_.start(std::move(request));
}

void SweepView::draw() {
  std::vector<std::pair<RunId, Colour>> runs;
  for (const Run& run : request_.runs) {
    runs.emplace_back(run.id, colour_of_run(bench().results(), run.id));
  }
  plots()[0]->set_scene(sweep_scene(chart_, SweepQuantity::time, runs));
  plots()[1]->set_scene(sweep_scene(chart_, SweepQuantity::bytes, runs));
}

void SweepView::prepare() { start(); }

void SweepView::finish() {
  start();
  work_.finish();
}

void SweepView::cancel() {
  soon_.stop();
  work_.cancel();
  asked_.clear();
  if (chart_.curves.empty()) show_text("cancelled: choose what to sweep over");
}

std::vector<Table> SweepView::tables() const {
  return chart_.curves.empty() ? std::vector<Table>{} : std::vector<Table>{to_table(chart_)};
}

}  // namespace fuseline::gui
