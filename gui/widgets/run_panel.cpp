#include "gui/widgets/run_panel.h"

#include <QAction>
#include <QEvent>
#include <QHeaderView>
#include <QMenu>
#include <QScrollBar>
#include <QTableView>
#include <QToolBar>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/choices.h"
#include "gui/widgets/qt_text.h"
#include "sim/measured/measurement.h"

namespace fuseline::gui {

namespace {

constexpr int kLeastColumn = 34;
constexpr int kNameLetters = 22;  // of a run that are to be seen

}  // namespace

RunPanel::RunPanel(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      model_(new RunModel(session, this)),
      table_(new QTableView(this)),
      add_(new QMenu(tr("&Add run"), this)) {
  add_->setToolTipsVisible(true);
  connect(add_, &QMenu::aboutToShow, this, &RunPanel::fill_add_menu);
  fill_add_menu();
  table_->setModel(model_);
  table_->setObjectName("runs");
  table_->setAccessibleName(tr("Runs"));
  table_->setShowGrid(false);
  table_->setWordWrap(false);
  table_->setFrameShape(QFrame::NoFrame);
  table_->setMouseTracking(true);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setEditTriggers(QAbstractItemView::EditKeyPressed);
  table_->setContextMenuPolicy(Qt::ActionsContextMenu);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(QFontMetrics(font()).height() + 9);
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setSectionResizeMode(RunModel::name, QHeaderView::Stretch);
  table_->horizontalHeader()->setMinimumSectionSize(kLeastColumn);
  table_->viewport()->installEventFilter(this);

  baseline_ = make_action(tr("&Baseline"), QKeySequence("Ctrl+B"),
                          tr("Compare all others with this run (double click)"));
  rename_ = make_action(tr("Re&name"), QKeySequence("F2"), tr("Rename the run"));
  remove_ = make_action(tr("&Remove"), QKeySequence("Ctrl+Del"), tr("Remove the run"));
  up_ = make_action(tr("Move &up"), QKeySequence("Ctrl+Up"), tr("Move the run up"));
  down_ = make_action(tr("Move &down"), QKeySequence("Ctrl+Down"), tr("Move the run down"));
  pin_ = make_action(tr("&Pin"), QKeySequence("Ctrl+P"),
                     tr("Keep the run's model, GPU and sizes while the controls change"));
  pin_->setCheckable(true);
  const auto on = [this](QAction* action, auto what) {
    connect(action, &QAction::triggered, this, [this, what] {
      const RunId id = current();
      if (id.value >= 0) session_.act([&](Workbench& bench) { what(bench, id); });
    });
  };
  on(baseline_, [](Workbench& bench, RunId id) { bench.set_baseline(id); });
  on(remove_, [](Workbench& bench, RunId id) { bench.remove_run(id); });
  on(pin_, [this](Workbench& bench, RunId id) { bench.pin_run(id, pin_->isChecked()); });
  on(up_, [this](Workbench& bench, RunId id) {
    const int row = model_->row_of(id);
    if (row > 0) bench.move_run(id, static_cast<std::size_t>(row - 1));
  });
  on(down_, [this](Workbench& bench, RunId id) {
    const int row = model_->row_of(id);
    if (row + 1 < model_->rowCount()) bench.move_run(id, static_cast<std::size_t>(row + 1));
  });
  connect(rename_, &QAction::triggered, this, [this] {
    const int row = model_->row_of(current());
    const QModelIndex name = model_->index(row, RunModel::name);
    // Qt warns of a second editor, and of one where nobody sees it.
    if (row < 0 || !table_->isVisible() || table_->isPersistentEditorOpen(name)) return;
    table_->setFocus();  // the editor of another name ends
    table_->edit(name);
  });

  auto* tools = new QToolBar(this);
  tools->setObjectName("run-tools");
  auto* add = new QToolButton(tools);
  add->setObjectName("add-run");
  add->setText(tr("Add"));
  add->setToolTip(tr("Add a prediction or a measurement"));
  add->setMenu(add_);
  add->setPopupMode(QToolButton::InstantPopup);
  tools->addWidget(add);
  for (QAction* action : {baseline_, rename_, remove_, pin_}) tools->addAction(action);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tools);
  column->addWidget(table_, 1);
  setFocusProxy(table_);

  connect(table_, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
    const RunId id = model_->row(index.row()).id;
    session_.act([id](Workbench& bench) { bench.set_baseline(id); });
  });
  connect(table_, &QTableView::entered, this, [this](const QModelIndex& index) {
    session_.hover(run_thing(model_->row(index.row()).id));
  });
  connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
          [this](const QModelIndex& now) {
            if (filling_) return;  // the list, and no person, chose another row
            if (now.isValid()) session_.select(run_thing(model_->row(now.row()).id));
            enable_actions();
          });
  refresh();
}

QAction* RunPanel::make_action(const QString& text, const QKeySequence& keys, const QString& tip) {
  auto* action = new QAction(text, this);
  action->setShortcut(keys);
  action->setToolTip(tip + " (" + keys.toString(QKeySequence::NativeText) + ")");
  actions_.push_back(action);
  table_->addAction(action);
  return action;
}

void RunPanel::fill_add_menu() {
  add_->clear();
  const Document& document = session_.bench().document();
  for (const Choice& choice : policy_choices(document.setup.workload.phase)) {
    QAction* action = add_->addAction(to_qt(choice.text));
    action->setEnabled(choice.enabled);
    action->setToolTip(to_qt(choice.enabled ? choice.tooltip : choice.why_not));
    connect(action, &QAction::triggered, this, [this, policy = choice.value] {
      session_.act([&](Workbench& bench) { bench.show_run(bench.add_run({.policy = policy})); });
    });
  }
  add_->addSection(tr("Measured"));
  std::vector<Run> measured;
  QString why = tr("none of this model, GPU and workload: run the benchmark first");
  try {
    if (!document.measurements.empty()) {
      const Measurements all = load_measurements(document.measurements);
      measured = measured_runs(all, document.setup);
      if (measured.empty()) {
        why = to_qt(std::filesystem::path(document.measurements).filename().string() + " " +
                    why_no_run_fits(all, document.setup));
      }
    }
  } catch (const std::exception& error) {
    why = message_of(error).section('\n', 0, 0);
  }
  for (const Run& run : measured) {
    connect(add_->addAction(tr("%1, measured").arg(to_qt(run.policy))), &QAction::triggered, this,
            [this, run] { session_.act([&](Workbench& bench) { bench.add_run(run); }); });
  }
  if (measured.empty()) add_->addAction(why)->setEnabled(false);
}

RunId RunPanel::current() const {
  const QModelIndex index = table_->currentIndex();
  return index.isValid() ? model_->row(index.row()).id : session_.bench().shown_run();
}

void RunPanel::enable_actions() {
  const int row = model_->row_of(current());
  for (QAction* action : actions_) action->setEnabled(row >= 0);
  if (row < 0) return;
  const RunRow& run = model_->row(row);
  baseline_->setEnabled(!run.is_baseline);
  remove_->setEnabled(model_->rowCount() > 1);
  up_->setEnabled(row > 0);
  down_->setEnabled(row + 1 < model_->rowCount());
  pin_->setChecked(run.pinned);
}

void RunPanel::refresh() {
  filling_ = true;  // the view still hears of its model's and its selection's changes
  model_->refresh(Theme(palette()));
  const int row = model_->row_of(session_.bench().shown_run());
  if (row >= 0) table_->setCurrentIndex(model_->index(row, 0));
  filling_ = false;
  show_what_fits();
  enable_actions();
}

void RunPanel::show_highlight(const Highlight& highlight) {
  const bool hovering = !session_.bench().selection().hovered.is_nothing();
  model_->show_highlight(hovering ? highlight.runs : std::set<RunId>());
}

void RunPanel::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) model_->refresh(Theme(palette()));
}

// Names come first, then time, HBM and their differences: columns that would squeeze names are left
// out.
void RunPanel::show_what_fits() {
  const QAbstractItemView* view = table_;  // whose hints are public
  const QScrollBar* bar = table_->verticalScrollBar();
  int room = table_->width() - (bar->isVisible() ? bar->width() : 0) -
             std::min(view->sizeHintForColumn(RunModel::name),
                      kNameLetters * fontMetrics().averageCharWidth());
  bool fits = true;
  for (const int column : {RunModel::time, RunModel::time_delta, RunModel::hbm, RunModel::hbm_delta,
                           RunModel::launches}) {
    room -= std::max(view->sizeHintForColumn(column), kLeastColumn);
    fits = fits && room >= 0;
    table_->setColumnHidden(column, column != RunModel::time && !fits);
  }
}

void RunPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  show_what_fits();
}

bool RunPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Leave) session_.hover({});
  return QWidget::eventFilter(watched, event);
}

}  // namespace fuseline::gui
