#include "gui/widgets/charts/serving_view.h"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"
#include "gui/widgets/charts/whole_model_view.h"

namespace fuseline::gui {

namespace {

constexpr int kServingCalmMs = 600;
constexpr double kCellHalf = 0.48;

const char* heading_of(ServingQuantity quantity) {
  switch (quantity) {
    case ServingQuantity::tokens_per_second:
      return "tokens a second";
    case ServingQuantity::step_time:
      return "time of a step";
    case ServingQuantity::cost:
      return "cost of a million tokens";
    case ServingQuantity::memory:
      break;
  }
  return "memory";
}

std::string tooltip_of(const ServingMap& map, const ServingCell& cell, std::size_t b,
                       std::size_t s) {
  std::string text = "B = " + grouped(map.batches[b]) + ", S = " + grouped(map.contexts[s]);
  if (!cell.problem.empty()) return text + "\n" + cell.problem;
  if (cell.fits) {
    text += "\n" + tokens_per_second_text(cell.tokens_per_second) + ", a step in " +
            short_time(cell.step);
  }
  if (cell.cost) text += "\n" + cost_text(*cell.cost);
  text += "\n" + short_bytes(cell.memory) + " of " + short_bytes(cell.capacity) +
          (cell.fits ? ": fits" : ": does not fit");
  return text;
}

}  // namespace

Scene serving_scene(const ServingMap& map, ServingQuantity quantity, RunId run) {
  Scene scene;
  scene.title = map.title + ": " + heading_of(quantity);
  double least = 1e300, most = 0;
  for (const ServingCell& cell : map.cells) {
    const std::optional<double> n = number_of(cell, quantity);
    if (!n || !cell.fits) continue;
    least = std::min(least, *n);
    most = std::max(most, *n);
  }
  if (most <= 0) {
    const bool free = quantity == ServingQuantity::cost;
    return empty_scene(scene.title, free ? "tokens cost something once the GPU has a price: set it "
                                           "above"
                                         : "the model fits with no batch and context of the map");
  }
  for (std::size_t b = 0; b < map.batches.size(); ++b) {
    const double at = static_cast<double>(b);
    scene.rows.push_back({.at = at, .text = "B = " + grouped(map.batches[b])});
    for (std::size_t s = 0; s < map.contexts.size(); ++s) {
      const ServingCell& cell = map.at(b, s);
      const std::optional<double> n = number_of(cell, quantity);
      const double x = static_cast<double>(s);
      Mark mark{.shape = Shape::bar,
                .from = {x - kCellHalf, at - kCellHalf},
                .to = {x + kCellHalf, at + kCellHalf},
                .colour = {ColourRole::rest, 0},
                .tooltip = tooltip_of(map, cell, b, s),
                .thing = run_thing(run)};
      if (n && cell.fits) {
        // On a log scale: each step of colour is as many times more.
        const double part = most > least ? std::log(*n / least) / std::log(most / least) : 1;
        const double good = more_is_better(quantity) ? part : 1 - part;
        mark.colour = {ColourRole::heat, static_cast<int>(std::lround(kMostHeat * good))};
        mark.label = cell_text(cell, quantity);
      } else {
        mark.label = cell.problem.empty() ? "no room" : "–";
        mark.measured = true;  // hatched
      }
      scene.marks.push_back(std::move(mark));
    }
  }
  scene.x = {.label = "context S, tokens in the cache of each sequence",
             .range = {-0.5, static_cast<double>(map.contexts.size()) - 0.5},
             .zooms = false};
  for (std::size_t s = 0; s < map.contexts.size(); ++s)
    scene.x.ticks.push_back({static_cast<double>(s), grouped(map.contexts[s])});
  scene.y = row_axis(map.batches.size());
  scene.y.zooms = false;
  scene.legend = {
      {more_is_better(quantity) ? "the most" : "the least",
       {ColourRole::heat, kMostHeat},
       Swatch::fill},
      {more_is_better(quantity) ? "the least" : "the most", {ColourRole::heat, 0}, Swatch::fill},
      {"does not fit in memory", {ColourRole::rest, 0}, Swatch::hatched}};
  scene.footnote = "Every sequence gets one token a step. Predicted, with all of the GPU for it.";
  return scene;
}

ServingView::ServingView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      quantity_(&add_choice(tr("Show"),
                            {tr("tokens a second"), tr("time of a step"), tr("cost"), tr("memory")},
                            tr("what the cells say, of the shown run"))),
      price_(price_box(this)),
      work_(
          this,
          [](const ServingRequest& request, const std::stop_token& stop, const Progress& progress) {
            return serving_map(request, stop, progress);
          },
          {.done =
               [this](ServingMap map) {
                 map_ = std::move(map);
                 draw();
               },
           .failed = [this](const std::string& why) { show_text(why); },
           .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("simulating")); }}) {
  controls().insertWidget(2, new QLabel(tr("Price an hour"), this));
  controls().insertWidget(3, price_);
  add_plot(1);
  soon_.setSingleShot(true);
  soon_.setInterval(kServingCalmMs);
  connect(&soon_, &QTimer::timeout, this, [this] { start(); });
  connect(quantity_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] {
    if (!map_.cells.empty()) draw();
  });
  connect(price_, QOverload<double>::of(&QDoubleSpinBox::valueChanged), this, [this] { start(); });
  show_text("not computed yet");
}

QString ServingView::hint() const {
  return tr(
      "Decode of the whole model under the shown run's policy, for every batch and context: the "
      "stronger the "
      "colour, the better. Hatched: weights, cache and activations do not fit in the GPU's "
      "memory.");
}

void ServingView::show_quantity(ServingQuantity quantity) {
  quantity_->setCurrentIndex(static_cast<int>(quantity));
}

void ServingView::refresh() { soon_.start(); }

void ServingView::start() {
  soon_.stop();
  const Run* run = bench().document().runs.find(bench().shown_run());
  if (run != nullptr && run->is_measurement()) {
    // What was measured is predicted all the same: take the policy's prediction.
    for (const Run& other : bench().document().runs.all())
      if (!other.is_measurement() && other.policy == run->policy) run = &other;
  }
  if (run == nullptr || run->is_measurement()) {
    work_.cancel();
    asked_.reset();
    show_text("the shown run was measured, and nothing of its policy is predicted");
    return;
  }
  ServingRequest request{bench().document().setup, *run, usual_batches(), usual_contexts(),
                         price_of(*price_)};
  if (asked_ && *asked_ == request) return;
  asked_ = request;
  if (map_.cells.empty()) show_text("simulating each batch and context");
  work_.start(std::move(request));
}

void ServingView::draw() {
  plots().front()->set_scene(serving_scene(map_,
                                           static_cast<ServingQuantity>(quantity_->currentIndex()),
                                           asked_ ? asked_->run.id : RunId{}));
}

void ServingView::show_text(const std::string& text) {
  map_ = {};
  plots().front()->set_scene(empty_scene(title().toStdString(), text));
}

void ServingView::finish() {
  start();
  work_.finish();
}

void ServingView::cancel() {
  soon_.stop();
  work_.cancel();
  asked_.reset();
}

std::vector<Table> ServingView::tables() const {
  if (map_.cells.empty() || !asked_) return {};
  return {to_table(map_, asked_->run.name)};
}

}  // namespace fuseline::gui
