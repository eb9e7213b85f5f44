#include "gui/widgets/trace_view.h"

#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTableWidget>
#include <algorithm>

#include "base/error.h"
#include "gui/model/chart_colours.h"
#include "gui/model/choices.h"
#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/trace_matcher.h"

namespace fuseline::gui {

namespace {

constexpr int kLowTraceLines = 22;  // of text; lower views are the chart's
constexpr double kTraceHalf = 0.18, kTraceApart = 0.2;
const char* const kNoTrace =
    "no trace is open: a profiler's file of PyTorch, Nsight Systems or Nsight Compute, of this "
    "model and these sizes";

std::string names_text(const TraceRow& row) {
  std::string text;
  for (const std::string& name : row.names) text += "\n" + name.substr(0, 100);
  return text;
}

// "2 launches (2.6 %) are no kernel of the plan".
std::string rest_text(const std::vector<TraceRest>& rest) {
  std::size_t launches = 0;
  double share = 0;
  for (const TraceRest& r : rest) {
    launches += r.launches;
    share += r.share;
  }
  if (launches == 0) return {};
  return std::to_string(launches) + (launches == 1 ? " launch (" : " launches (") +
         QString::number(100 * share, 'f', 1).toStdString() + " %) " +
         (launches == 1 ? "is" : "are") + " no kernel of the plan";
}

}  // namespace

Scene trace_scene(const TraceChart& chart) {
  Scene scene;
  scene.title = chart.title;
  double at = 0, most = 0;
  for (const TraceRow& r : chart.rows) {
    Row out{.at = at, .text = r.kernel, .tooltip = "matched by " + r.by + names_text(r)};
    const double predicted = to_us(r.predicted);
    scene.marks.push_back({.shape = Shape::bar,
                           .from = {0, at - kTraceApart - kTraceHalf},
                           .to = {predicted, at - kTraceApart + kTraceHalf},
                           .colour = {role_of(r.kind), 0},
                           .label = short_time(r.predicted),
                           .tooltip = r.kernel + ", predicted: " + short_time(r.predicted)});
    most = std::max(most, predicted);
    if (r.measured && r.measured->median > Seconds()) {
      const double us = to_us(r.measured->median);
      scene.marks.push_back({.shape = Shape::bar,
                             .from = {0, at + kTraceApart - kTraceHalf},
                             .to = {us, at + kTraceApart + kTraceHalf},
                             .colour = {role_of(r.kind), 0},
                             .measured = true,
                             .label = short_time(r.measured->median),
                             .tooltip = r.kernel + ", measured: " + short_time(r.measured->median) +
                                        "\nmatched by " + r.by + names_text(r)});
      most = std::max(most, us);
      if (chart.doubt.empty())
        out.result = signed_percent_text(r.predicted / r.measured->median - 1);
      out.result_note = "by " + r.by;
      out.note_colour = {ColourRole::muted, 0};
    } else {
      out.result_note = "not in the trace";
      out.note_colour = {ColourRole::worse, 2};
    }
    scene.rows.push_back(std::move(out));
    ++at;
  }
  add_to_legend(scene, {"predicted", {ColourRole::neutral, 0}, Swatch::fill});
  add_to_legend(scene, {"measured", {ColourRole::neutral, 0}, Swatch::hatched});
  scene.x = {.label = "µs", .range = snug_range(most, nice_above(most * 1.02))};
  scene.y = row_axis(scene.rows.size());
  scene.footnote = chart.doubt;  // in pictures, which have no line under the chart
  return scene;
}

TraceView::TraceView(Session& session, const std::filesystem::path& state_folder, QWidget* parent)
    : ChartView(session.bench(), parent),
      session_(session),
      folder_(state_folder / "measured"),
      policy_(&add_choice(tr("Beside"), {}, tr("whose plan the trace is of"))),
      open_(new QPushButton(tr("Open…"), this)),
      keep_(new QPushButton(tr("Keep"), this)),
      judged_(new QLabel(this)),
      rest_(new QTableWidget(this)),
      matcher_(new TraceMatcher(this)),
      work_(this,
            [](const TraceRequest& request, const std::stop_token& stop, const Progress& progress) {
              return import_trace(request, stop, progress);
            },
            {.done =
                 [this](std::shared_ptr<const TracedBlock> traced) {
                   traced_ = std::move(traced);
                   before_.clear();
                   chart_ = trace_chart(*traced_, asked_->setup);
                   draw();
                 },
             .failed = [this](const std::string& why) { show_text(why); },
             .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("matching")); }}) {
  policy_->setObjectName("trace-policy");
  open_->setObjectName("trace-open");
  keep_->setObjectName("trace-keep");
  open_->setToolTip(tr("A profiler's trace of this block"));
  keep_->setToolTip(
      tr("Keep it in the session as a measurement: its run stands beside the predictions, and "
         "Validation judges it"));
  controls().insertWidget(0, open_);
  controls().insertWidget(controls().count() - 3, keep_);
  judged_->setObjectName("trace-judged");
  judged_->setWordWrap(true);
  judged_->setContentsMargins(10, 2, 10, 2);
  judged_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  body().addWidget(judged_);
  add_plot(3);
  body().addWidget(rest_, 1);
  rest_->setObjectName("trace-rest");
  rest_->setAccessibleName(tr("Launches that no kernel of the plan is"));
  rest_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  rest_->setSelectionBehavior(QAbstractItemView::SelectRows);
  rest_->setFrameShape(QFrame::NoFrame);
  rest_->setShowGrid(false);
  rest_->verticalHeader()->hide();
  rest_->setColumnCount(4);
  rest_->setHorizontalHeaderLabels(
      {tr("µs"), tr("share"), tr("launches"), tr("in the block, and no kernel of the plan")});
  rest_->horizontalHeader()->setStretchLastSection(true);
  auto* by_hand = new QPushButton(tr("By hand"), this);
  by_hand->setObjectName("trace-by-hand");
  by_hand->setCheckable(true);
  by_hand->setToolTip(tr("Say which launch is which kernel of the plan"));
  controls().insertWidget(controls().count() - 3, by_hand);
  body().addWidget(matcher_, 2);
  matcher_->hide();
  connect(by_hand, &QPushButton::toggled, this, [this](bool on) {
    matcher_->setVisible(on);
    rest_->setVisible(!on && !chart_.rest.empty() && !is_low());
    show_judged();
  });
  connect(matcher_, &TraceMatcher::matched, this, &TraceView::match);
  connect(matcher_, &TraceMatcher::taken_back, this, &TraceView::take_match_back);
  connect(open_, &QPushButton::clicked, this, [this] { choose_file(); });
  connect(keep_, &QPushButton::clicked, this, [this] { keep(); });
  connect(policy_, QOverload<int>::of(&QComboBox::activated), this, [this] { start(); });
  show_text(kNoTrace);
}

QString TraceView::hint() const {
  return tr(
      "A profiler's trace: which launch is which kernel of the plan, what it took, and what "
      "belongs to none.");
}

void TraceView::choose_file() {
  const QString file = QFileDialog::getOpenFileName(
      this, tr("Open a trace"), {}, tr("Traces (*.json *.json.gz *.sqlite *.csv);;All files (*)"));
  if (!file.isEmpty()) open(from_qt(file));
}

void TraceView::open(const std::filesystem::path& file) {
  file_ = file.string();
  asked_.reset();
  start();
}

void TraceView::refresh() {
  const QSignalBlocker quiet(policy_);
  const QVariant before = policy_->currentData();
  policy_->clear();
  policy_->addItem(tr("the plan that fits best"), QString());
  for (const Choice& c : policy_choices(bench().document().setup.workload.phase))
    if (c.enabled && c.value != kCustomPolicy) policy_->addItem(to_qt(c.text), to_qt(c.value));
  policy_->setCurrentIndex(std::max(0, policy_->findData(before)));
  start();
}

// Another model or size is another block to look for in the trace.
void TraceView::start() {
  if (file_.empty()) return;
  TraceRequest request{file_, bench().document().setup, from_qt(policy_->currentData().toString())};
  if (asked_ && *asked_ == request) return;
  asked_ = request;
  traced_.reset();
  show_text("matching " + std::filesystem::path(file_).filename().string());
  work_.start(std::move(request));
}

void TraceView::draw() {
  plots().front()->set_scene(trace_scene(chart_));
  show_judged();
  keep_->setEnabled(true);
  fill_rest();
  matcher_->show_chart(chart_, !before_.empty());
}

// A low view keeps to what decides, and the rest is in the tooltip.
void TraceView::show_judged() {
  QStringList lines;
  if (!chart_.doubt.empty()) lines += to_qt(chart_.doubt);
  if (chart_.doubt.empty() || !is_low())
    lines += to_qt(is_low() ? chart_.judged_short : chart_.judged);
  QStringList all{to_qt(chart_.doubt), to_qt(chart_.judged)};
  all.removeAll(QString());
  for (const std::string& note : chart_.notes) all += to_qt(note);
  if (is_low() && matcher_->isHidden() && chart_.doubt.empty())
    lines += to_qt(rest_text(chart_.rest));
  if (!is_low()) lines = all;
  lines.removeAll(QString());
  judged_->setText(lines.join('\n'));
  judged_->setToolTip(all.join('\n'));
  judged_->setVisible(!lines.isEmpty());
}

bool TraceView::is_low() const {
  return height() < kLowTraceLines * QFontMetrics(small_font(font())).height();
}

void TraceView::resizeEvent(QResizeEvent* event) {
  ChartView::resizeEvent(event);
  if (chart_.rows.empty()) return;
  rest_->setVisible(!chart_.rest.empty() && matcher_->isHidden() && !is_low());
  show_judged();
}

void TraceView::match(const std::vector<std::size_t>& launches, std::optional<std::size_t> kernel) {
  if (!traced_ || launches.empty()) return;
  before_.push_back(traced_);
  traced_ = match_by_hand(*traced_, launches, kernel);
  chart_ = trace_chart(*traced_, asked_->setup);
  draw();
}

void TraceView::take_match_back() {
  if (before_.empty()) return;
  traced_ = before_.back();
  before_.pop_back();
  chart_ = trace_chart(*traced_, asked_->setup);
  draw();
}

void TraceView::fill_rest() {
  rest_->setRowCount(0);
  rest_->setVisible(!chart_.rest.empty() && matcher_->isHidden() && !is_low());
  for (const TraceRest& r : chart_.rest) {
    const int row = rest_->rowCount();
    rest_->insertRow(row);
    const QStringList cells = {to_qt(short_time(r.time)),
                               QString("%1 %").arg(100 * r.share, 0, 'f', 1),
                               QString::number(r.launches), to_qt(r.name)};
    for (int c = 0; c < cells.size(); ++c) {
      auto* item = new QTableWidgetItem(cells[c]);
      item->setToolTip(cells[c]);
      rest_->setItem(row, c, item);
    }
  }
  rest_->resizeColumnsToContents();
  rest_->resizeRowsToContents();
}

void TraceView::show_text(const std::string& text) {
  chart_ = {};
  plots().front()->set_scene(empty_scene(title().toStdString(), text));
  judged_->hide();
  keep_->setEnabled(false);
  before_.clear();
  matcher_->show_chart(chart_, false);
  fill_rest();
}

void TraceView::keep() {
  if (!traced_) return;
  session_.act([this](Workbench&) {
    session_.take_in(keep_trace(*traced_, folder_), FileKind::measurements);
  });
}

void TraceView::finish() {
  start();
  work_.finish();
}

void TraceView::cancel() {
  if (!is_busy()) return;
  work_.cancel();
  asked_.reset();
  file_.clear();
  show_text(kNoTrace);
}

std::vector<Table> TraceView::tables() const {
  return chart_.rows.empty() ? std::vector<Table>{} : to_tables(chart_);
}

}  // namespace fuseline::gui
