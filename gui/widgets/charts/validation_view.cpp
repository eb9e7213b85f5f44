#include "gui/widgets/charts/validation_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QPushButton>
#include <QSignalBlocker>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "gui/widgets/charts/error_table.h"
#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kFewPoints = 16;  // that get labels
constexpr int kTableWidth = 1080;       // from which on there is room for it beside the scatter
constexpr int kTableHeight = 520;       // or below it
constexpr double kTableShare = 0.5;

}  // namespace

Scene validation_scene(const ValidationChart& chart, std::size_t scatter) {
  if (!chart.problem.empty() || scatter >= chart.scatters.size()) {
    return empty_scene("Predicted against measured", chart.problem);
  }
  const Scatter& s = chart.scatters[scatter];
  const double low = s.axis.low, high = s.axis.high;
  Scene scene;
  scene.title = s.title + ": " + std::to_string(s.inside_band) + " of " + std::to_string(s.judged) +
                " within ±10 %" + (chart.predictors.size() > 1 ? " (hierarchy)" : "");
  scene.x = {.label = s.x_label, .range = s.axis, .log = true};
  scene.y = {.label = s.y_label, .range = s.axis, .log = true};
  scene.marks.push_back({.shape = Shape::area,
                         .path = {{low, low * (1 - kBand)},
                                  {high, high * (1 - kBand)},
                                  {high, high * (1 + kBand)},
                                  {low, low * (1 + kBand)}},
                         .colour = {ColourRole::on_chip, 0},
                         .quiet = true});
  scene.marks.push_back({.shape = Shape::line,
                         .from = {low, low},
                         .to = {high, high},
                         .colour = {ColourRole::muted, 0},
                         .quiet = true});
  // The predictors in turn, the one that counts last and on top.
  std::vector<std::size_t> order;
  const auto judged = std::ranges::find(chart.predictors, "hierarchy");
  for (std::size_t i = 0; i < chart.predictors.size(); ++i) {
    order.push_back(i);
    if (chart.predictors.size() > 1) {
      scene.legend.push_back(
          {chart.predictors[i], {ColourRole::run, static_cast<int>(i)}, Swatch::dot});
    }
  }
  if (judged != chart.predictors.end()) {
    const auto at = order.begin() + (judged - chart.predictors.begin());
    std::rotate(at, at + 1, order.end());
  }
  const bool few = s.points.size() <= kFewPoints;
  for (const std::size_t predictor : order) {
    for (const ScatterPoint& p : s.points) {
      if (p.predictor != predictor) continue;
      const bool beyond = p.at.y < low || p.at.y > high;
      scene.marks.push_back({.shape = beyond ? Shape::diamond : Shape::point,
                             .from = {p.at.x, std::clamp(p.at.y, low, high)},
                             .colour = p.colour,
                             .size = few ? 0.16 : 0.09,
                             .label = few ? p.label : "",
                             .label_rank = static_cast<int>(100 * std::min(1.0, std::abs(p.error))),
                             .tooltip = p.tooltip,
                             .thing = p.run ? run_thing(*p.run) : Thing{}});
    }
  }
  add_to_legend(scene, {"±10 %", {ColourRole::on_chip, 1}, Swatch::fill});
  scene.footnote = chart.machine;
  if (!chart.source.empty()) {
    scene.footnote += (scene.footnote.empty() ? "" : "\n") + ("Measured: " + chart.source);
  }
  if (std::ranges::find(chart.predictors, "left out") != chart.predictors.end()) {
    scene.footnote += (scene.footnote.empty() ? "" : "\n") +
                      std::string(
                          "Left out: hierarchy with its constants fitted without the model "
                          "that is judged.");
  }
  return scene;
}

ValidationView::ValidationView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      quantity_(&add_choice(tr("Show"), {}, tr("what is predicted and measured"))),
      source_(&add_choice(tr("Measurements"), {},
                          tr("those that are judged: of the session and of "
                             "its measured runs"))),
      as_table_(new QCheckBox(tr("Errors"), this)),
      judge_(new QPushButton(tr("Judge all measurements"), this)),
      table_(new ErrorTableWidget(this)),
      work_(this,
            [&bench](const Request& r, const std::stop_token& stop, const Progress& progress) {
              const auto measurements = bench.cache().measurements(r.measurements);
              const Gpu gpu = measured_gpu(r.setup, *measurements);
              Judged judged{judge(gpu, *measurements, stop, progress), {}, {}};
              judged.chart = validation_chart(judged.errors, measurements->meta, gpu);
              judged.gpu = gpu;
              judged.chart.machine = whose_predictions(gpu, load_gpu(r.setup.gpu));
              return judged;
            },
            {.done =
                 [this](Judged judged) {
                   judged_ = std::move(judged);
                   show_chart(judged_->chart);
                   as_table_->setChecked(true);  // what was asked for
                 },
             .failed =
                 [this](const std::string& why) {
                   ValidationChart chart;
                   chart.problem = why;
                   show_chart(std::move(chart));
                 },
             .changed =
                 [this] {
                   show_work(work_.is_busy(), work_.progress(), tr("judging"));
                   judge_->setEnabled(!work_.is_busy());
                 }}) {
  add_plot(1);
  body().addWidget(table_, 1);
  controls().insertWidget(4, judge_);
  controls().insertWidget(5, as_table_);
  as_table_->setToolTip(tr("the table of errors in place of the chart, where both have no room"));
  connect(as_table_, &QCheckBox::toggled, this, [this] { share_room(); });
  source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  source_->setMinimumContentsLength(10);
  connect(source_, QOverload<int>::of(&QComboBox::activated), this, [this] { refresh(); });
  judge_->setToolTip(
      tr("predict every measured block and GEMM by each predictor, for the GPU that was measured, "
         "as `fuseline compare` does; takes seconds"));
  connect(judge_, &QPushButton::clicked, this, [this] { judge_all(); });
  connect(quantity_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] { draw(); });
}

QString ValidationView::hint() const {
  return tr(
      "Each point is one measured case, predicted for the GPU that it was measured on. On the line "
      "the prediction is right; the band is ±10 %. Points beyond the axes lie on their edge as "
      "diamonds.");
}

ValidationView::Request ValidationView::request() const {
  Request r{bench().document().setup, source_->currentData().toString().toStdString()};
  r.setup.what_if = {};  // the machine that was measured
  return r;
}

// The session's own first, then those of measured runs that lie elsewhere.
void ValidationView::fill_sources() {
  const QSignalBlocker quiet(source_);
  const QVariant before = source_->currentData();
  const std::string was = source_->count() > 0 ? source_->itemData(0).toString().toStdString() : "";
  std::vector<std::string> paths;
  const Document& document = bench().document();
  const auto add = [&](const std::string& path) {
    if (!path.empty() && std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  };
  add(document.measurements);
  for (const Run& run : document.runs.all()) add(run.measurements);
  source_->clear();
  for (const std::string& path : paths) {
    const std::filesystem::path name = std::filesystem::path(path).lexically_normal();
    source_->addItem(QString::fromStdString(
                         (name.has_filename() ? name : name.parent_path()).filename().string()),
                     QString::fromStdString(path));
    source_->setItemData(source_->count() - 1, QString::fromStdString(path), Qt::ToolTipRole);
  }
  // What was opened last is what is to be judged.
  const int kept = source_->findData(before);
  const bool opened = !paths.empty() && paths.front() != was;
  source_->setCurrentIndex(opened || kept < 0 ? 0 : kept);
  source_->setEnabled(source_->count() > 1);
}

void ValidationView::refresh() {
  fill_sources();
  if (judged_request_ && *judged_request_ == request()) return;  // the same, or on its way
  work_.cancel();
  judged_.reset();
  judged_request_.reset();
  const std::string problem = problem_of(bench().results());
  ValidationChart chart = validation_of_runs(bench().results());
  if (!problem.empty()) chart.problem = problem;
  show_chart(std::move(chart));
}

void ValidationView::judge_all() {
  if (source_->count() == 0) {
    ValidationChart chart;
    chart.problem =
        "the session names no measurements: open a folder of them, or run `fuseline measure`";
    show_chart(std::move(chart));
    return;
  }
  judged_request_ = request();
  work_.start(*judged_request_);
}

void ValidationView::prepare() {
  if (!judged_ && !work_.is_busy() && source_->count() > 0) judge_all();
}

void ValidationView::finish() {
  prepare();
  work_.finish();
}

void ValidationView::show_chart(ValidationChart chart) {
  chart_ = std::move(chart);
  {
    const QSignalBlocker quiet(quantity_);
    const QString before = quantity_->currentText();
    quantity_->clear();
    for (const Scatter& s : chart_.scatters) {
      quantity_->addItem(QString::fromStdString(s.title));
    }
    quantity_->setCurrentIndex(std::max(0, quantity_->findText(before)));
  }
  table_->set_grid(error_grid(chart_), theme());
  draw();
}

void ValidationView::draw() {
  plots().front()->set_scene(
      validation_scene(chart_, static_cast<std::size_t>(std::max(0, quantity_->currentIndex()))));
}

void ValidationView::restyle() {
  ChartView::restyle();
  table_->set_grid(error_grid(chart_), theme());
}

void ValidationView::resizeEvent(QResizeEvent* event) {
  ChartView::resizeEvent(event);
  share_room();
}

// Chart and table where both have room, else the one that is chosen.
void ValidationView::share_room() {
  const bool wide = width() >= kTableWidth;
  const bool both = wide || height() >= kTableHeight;
  body().setDirection(wide ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  as_table_->setVisible(!both);
  table_->setVisible(both || as_table_->isChecked());
  plots().front()->setVisible(both || !as_table_->isChecked());
}

void ValidationView::paint_content(QPainter& painter, const QRect& area) {
  if (!chart_.problem.empty() || (area.width() < kTableWidth && area.height() < kTableHeight)) {
    paint_plots(painter, area);
    return;
  }
  QRect scatter = area, table = area;
  if (area.width() >= kTableWidth) {
    scatter.setWidth(static_cast<int>(area.width() * (1 - kTableShare)));
    table.setLeft(scatter.right() + 1);
  } else {
    scatter.setHeight(static_cast<int>(area.height() * 0.62));
    table.setTop(scatter.bottom() + 1);
  }
  paint_plots(painter, scatter);
  table_->paint_on(painter, table, theme(), font());
}

std::vector<Table> ValidationView::tables() const {
  std::vector<Table> tables{scatter_table(chart_)};
  if (judged_) tables.push_back(error_table(judged_->errors, judged_->gpu));
  return tables;
}

}  // namespace fuseline::gui
