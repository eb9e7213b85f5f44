#include "gui/widgets/causes_view.h"

#include <QHeaderView>
#include <QPushButton>
#include <QTableWidget>
#include <algorithm>

#include "gui/model/text.h"
#include "gui/widgets/charts/plot.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostCauses = 12;  // that are shown
constexpr int kCausesCalmMs = 300;
constexpr double kCauseHalf = 0.36;

ColourRole role_of_cause(CauseKind kind) {
  switch (kind) {
    case CauseKind::traffic:
      return ColourRole::bound_hbm;
    case CauseKind::policy:
      return ColourRole::predicted;
    case CauseKind::launches:
      return ColourRole::bound_launch;
    case CauseKind::limit:
      break;
  }
  return ColourRole::limit;
}

const char* legend_of(CauseKind kind) {
  switch (kind) {
    case CauseKind::traffic:
      return "a tensor crosses HBM";
    case CauseKind::policy:
      return "another policy does better";
    case CauseKind::launches:
      return "launch gaps";
    case CauseKind::limit:
      break;
  }
  return "what no schedule recovers";
}

std::string short_name(const Cause& cause) {
  if (cause.fuse) return cause.fuse->from + " → " + cause.fuse->to;
  if (cause.policy) return *cause.policy;
  return cause.kind == CauseKind::launches ? "launch gaps" : "the machine's limit";
}

}  // namespace

Scene causes_scene(const Causes& causes) {
  if (!causes.problem.empty()) return empty_scene("Why is it slow", causes.problem);
  Scene scene;
  scene.title = causes.title;
  double at = 0, most = 0;
  std::size_t shown = 0;
  for (const Cause& cause : causes.causes) {
    const bool limit = cause.kind == CauseKind::limit;
    if (!limit && ++shown > kMostCauses) continue;
    const double us = to_us(limit ? causes.bound : cause.recovers);
    const double part = us / to_us(causes.time);
    scene.rows.push_back(
        {.at = at,
         .text = short_name(cause),
         .result = limit ? short_time(causes.bound) : signed_time(-1.0 * cause.recovers),
         .result_note = signed_percent_text(limit ? part - 1 : -part),
         .note_colour = {ColourRole::muted, 0},
         .tooltip = cause.text,
         .thing = cause.fuse ? edge_thing(*cause.fuse) : Thing{}});
    scene.marks.push_back(
        {.shape = Shape::bar,
         .from = {0, at - kCauseHalf},
         .to = {us, at + kCauseHalf},
         .colour = {role_of_cause(cause.kind), 0},
         .tooltip = cause.text + (cause.change.empty() ? "" : "\n" + cause.change),
         .thing = cause.fuse ? edge_thing(*cause.fuse) : Thing{},
         .operators = cause.operators});
    add_to_legend(scene, {legend_of(cause.kind), {role_of_cause(cause.kind), 0}, Swatch::fill});
    most = std::max(most, us);
    ++at;
  }
  scene.x = {.label = "µs that this change alone recovers; last: the least time",
             .range = snug_range(most, nice_above(most * 1.02))};
  scene.y = row_axis(scene.rows.size());
  scene.footnote =
      "Each is simulated alone. Two changes may recover the same time: they do not add up.";
  return scene;
}

CausesView::CausesView(Session& session, QWidget* parent)
    : ChartView(session.bench(), parent),
      session_(session),
      list_(new QTableWidget(this)),
      work_(
          this,
          [&cache = session.bench().cache()](const Request& r, const std::stop_token& stop,
                                             const Progress& progress) {
            return causes_of(r.document, r.run, cache, stop, progress);
          },
          {.done =
               [this](Causes causes) {
                 causes_ = std::move(causes);
                 draw();
               },
           .failed =
               [this](const std::string& why) {
                 causes_ = {};
                 causes_.problem = why;
                 draw();
               },
           .changed = [this] { show_work(work_.is_busy(), work_.progress(), tr("simulating")); }}) {
  add_plot(3);
  body().addWidget(list_, 2);
  list_->setObjectName("cause-list");
  list_->setAccessibleName(tr("Causes, with what recovers their time"));
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setSelectionMode(QAbstractItemView::NoSelection);
  list_->setFrameShape(QFrame::NoFrame);
  list_->setShowGrid(false);
  list_->verticalHeader()->hide();
  list_->setColumnCount(3);
  list_->setHorizontalHeaderLabels({tr("recovers"), tr("change"), tr("cause")});
  list_->horizontalHeader()->setStretchLastSection(true);
  soon_.setSingleShot(true);
  soon_.setInterval(kCausesCalmMs);
  connect(&soon_, &QTimer::timeout, this, [this] { start(); });
  causes_.problem = "not computed yet";
  draw();
}

QString CausesView::hint() const {
  return tr(
      "What the shown run loses time to, the most first. A button makes the change, in a run of "
      "its "
      "own; Undo takes it back.");
}

void CausesView::refresh() { soon_.start(); }

void CausesView::start() {
  soon_.stop();
  const RunView* view = bench().results().find(bench().shown_run());
  if (view == nullptr || bench().document().runs.find(view->run.id) == nullptr) return;
  if (view->result == asked_) return;
  asked_ = view->result;
  work_.start({bench().document(), *view});
}

void CausesView::draw() {
  plots().front()->set_scene(causes_scene(causes_));
  fill_list();
}

void CausesView::fill_list() {
  list_->setRowCount(0);
  list_->setVisible(causes_.problem.empty());
  for (const Cause& cause : causes_.causes) {
    if (cause.kind == CauseKind::limit || list_->rowCount() >= static_cast<int>(kMostCauses))
      continue;
    const int row = list_->rowCount();
    list_->insertRow(row);
    list_->setItem(row, 0, new QTableWidgetItem(to_qt(short_time(cause.recovers))));
    auto* text = new QTableWidgetItem(to_qt(cause.text));
    text->setToolTip(text->text());
    list_->setItem(row, 2, text);
    if (cause.change.empty()) {
      list_->setItem(row, 1, new QTableWidgetItem(tr("fuse: fewer launches")));
      continue;
    }
    auto* button = new QPushButton(to_qt(cause.change), list_);
    button->setObjectName("recover");
    button->setAccessibleName(to_qt(cause.change + ": " + cause.text));
    connect(button, &QPushButton::clicked, this, [this, cause] { take(cause); });
    list_->setCellWidget(row, 1, button);
  }
  list_->resizeColumnsToContents();
  list_->resizeRowsToContents();
}

// A cause is of the run that was shown when it was found.
void CausesView::take(const Cause& cause) {
  const Cause taken = cause;  // the list is filled anew meanwhile
  if (bench().document().runs.find(causes_.run) == nullptr) return;
  session_.show_run(causes_.run);
  if (taken.fuse) {
    session_.toggle_edge(*taken.fuse);
  } else if (taken.policy) {
    const std::optional<Setup> setup = bench().document().runs.at(causes_.run).setup;
    session_.act(
        [&](Workbench& b) { b.show_run(b.add_run({.policy = *taken.policy, .setup = setup})); });
  }
}

void CausesView::finish() {
  start();
  work_.finish();
}

void CausesView::cancel() {
  soon_.stop();
  work_.cancel();
  asked_.reset();
}

std::vector<Table> CausesView::tables() const {
  return causes_.causes.empty() ? std::vector<Table>{} : std::vector<Table>{to_table(causes_)};
}

}  // namespace fuseline::gui
