#include "gui/widgets/main_window.h"

#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QKeyEvent>
#include <QLabel>
#include <QMessageBox>
#include <QMimeData>
#include <QPixmapCache>
#include <QProgressBar>
#include <QScrollArea>
#include <QStatusBar>
#include <QTimer>
#include <QToolButton>
#include <algorithm>

#include "base/error.h"
#include "gui/widgets/block_view.h"
#include "gui/widgets/causes_view.h"
#include "gui/widgets/code_view.h"
#include "gui/widgets/details_panel.h"
#include "gui/widgets/held_memory.h"
#include "gui/widgets/kernel_view.h"
#include "gui/widgets/layers_view.h"
#include "gui/widgets/measure_view.h"
#include "gui/widgets/missions_view.h"
#include "gui/widgets/pair_view.h"
#include "gui/widgets/plan_view.h"
#include "gui/widgets/program_view.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/search_box.h"
#include "gui/widgets/search_view.h"
#include "gui/widgets/setup_panel.h"
#include "gui/widgets/tour_guide.h"
#include "gui/widgets/trace_view.h"
#include "gui/widgets/what_if_panel.h"

namespace fuseline::gui {

namespace {

constexpr int kNoteMs = 12000;
constexpr int kSoonMs = 100;
constexpr int kMostPixmaps = 2048;  // kB that the style may keep of what it has drawn

// As many as a comparison shows, with those before some undos.
constexpr std::size_t kResultsAtRest = 24;

// Docks behind another tab are visible to Qt: they lie outside of the window.
bool is_seen(const View& view) { return view.isVisible() && !view.visibleRegion().isEmpty(); }

QScrollArea* scrolling(QWidget* content) {
  auto* area = new QScrollArea;
  area->setWidget(content);
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAsNeeded);
  return area;
}

}  // namespace

MainWindow::MainWindow(Session& session, const std::filesystem::path& state_folder)
    : session_(session),
      settings_file_(state_folder / "window.ini"),
      graph_(new GraphView(session, this)),
      runs_(new RunPanel(session, this)),
      setup_(new SetupPanel(session, this)),
      what_if_(new WhatIfPanel(session, this)),
      details_(new DetailsPanel(session, this)),
      search_(new SearchBox(session, this)),
      files_(new FileActions(session, *this)) {
  setObjectName("fuseline");
  QPixmapCache::setCacheLimit(kMostPixmaps);
  setDockNestingEnabled(true);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setAcceptDrops(true);
  setMinimumSize(900, 600);
  resize(1500, 950);
  setCentralWidget(graph_);

  views_ = make_chart_views(session.bench(), this);
  views_.insert(views_.begin(), graph_);
  views_.push_back(new CausesView(session, this));
  views_.push_back(new PairView(session, this));
  views_.push_back(new LayersView(session.bench(), this));
  auto* search = new SearchView(session, this);
  views_.push_back(search);
  views_.push_back(new MeasureView(session, state_folder, this));
  auto* trace = new TraceView(session, state_folder, this);
  views_.push_back(trace);
  views_.push_back(new KernelView(session.bench(), this));
  views_.push_back(new ProgramView(session.bench(), this));
  views_.push_back(new CodeView(session.bench(), this));
  views_.push_back(new PlanView(session, this));
  views_.push_back(new BlockView(session, this));
  auto* missions = new MissionsView(session, state_folder, this);
  views_.push_back(missions);

  add_dock(runs_, "runs", tr("Runs"));
  add_dock(scrolling(setup_), "setup", tr("Setup"));
  add_dock(scrolling(what_if_), "what-if", tr("What if"));
  add_dock(details_, "details", tr("Details"));
  for (View* v : views_) {
    v->setToolTip({});
    v->setStatusTip(v->hint());
    offer_copies(*v);
    if (v == graph_) continue;
    QDockWidget* d = add_dock(v, v->id(), v->title());
    connect(d, &QDockWidget::dockLocationChanged, this, &MainWindow::name_tabs);
    connect(d, &QDockWidget::visibilityChanged, this, [this, v](bool visible) {
      show_progress();  // of what is seen now
      if (!visible) {
        v->put_away();
        return;
      }
      if (stale_.contains(v)) {
        refresh_view(v);
      } else {
        v->show_highlight(session_.bench().highlighted());
      }
    });
  }
  connect(graph_, &GraphView::search_began, this,
          [this, search](const std::shared_ptr<SearchWatch>& watch, const Run& run) {
            search->follow(watch, run);
            raise_view(search->id());
          });
  connect(search, &SearchView::start_requested, graph_, [this] { graph_->search_best(); });
  connect(missions, &MissionsView::start_requested, this, [this](const Mission& mission) {
    if (files_->may_lose_work()) session_.start_anew(mission.start());
  });
  connect(&session_, &Session::trace_given, this, [this, trace](const QString& file) {
    raise_view(trace->id());
    trace->open(from_qt(file));
  });
  graph_->setMinimumSize(240, 200);
  make_menus();
  make_status_bar();
  connect_session();
  tour_ = new TourGuide(session_, *this);
  show_document();
  show_progress();
  details_->refresh();
  for (View* v : views_) stale_.insert(v);
  if (!session_.bench().results().runs.empty()) refresh_views();
}

// Docks and views say until their end what becomes of them, which is after the end of what listens.
MainWindow::~MainWindow() {
  for (const QDockWidget* d : docks_) disconnect(d, nullptr, this, nullptr);
  for (const View* v : views_) disconnect(v, nullptr, this, nullptr);
}

QDockWidget* MainWindow::add_dock(QWidget* content, const QString& id, const QString& title) {
  auto* d = new QDockWidget(title, this);
  d->setObjectName("dock-" + id);
  d->setWidget(content);
  content->setMinimumSize(240, qobject_cast<View*>(content) != nullptr ? 180 : 90);
  addDockWidget(Qt::RightDockWidgetArea, d);
  docks_.push_back(d);
  return d;
}

QDockWidget* MainWindow::dock(const QString& id) const {
  const auto found = std::ranges::find_if(
      docks_, [&](const QDockWidget* d) { return d->objectName() == "dock-" + id; });
  return found == docks_.end() ? nullptr : *found;
}

View* MainWindow::view(const QString& id) const {
  const auto found = std::ranges::find_if(views_, [&](const View* v) { return v->id() == id; });
  return found == views_.end() ? nullptr : *found;
}

bool MainWindow::is_idle() const {
  return !session_.bench().is_computing() && !session_.bench().results().runs.empty() &&
         !graph_->is_busy();
}

void MainWindow::raise_view(const QString& id) {
  QDockWidget* d = dock(id);
  if (d == nullptr) {
    if (View* v = view(id)) v->setFocus();
    return;
  }
  d->show();
  d->raise();
  d->widget()->setFocus();
}

void MainWindow::make_status_bar() {
  what_ = new QLabel(this);
  what_->setObjectName("what");
  what_->setMinimumWidth(80);
  what_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  progress_ = new QProgressBar(this);
  progress_->setObjectName("progress");
  progress_->setRange(0, 100);
  progress_->setTextVisible(false);
  progress_->setFixedSize(120, 10);
  cancel_ = new QToolButton(this);
  cancel_->setObjectName("cancel");
  cancel_->setText(tr("Cancel"));
  cancel_->setToolTip(tr("Stop what is computed; what is shown stays (Esc)"));
  cancel_->setAutoRaise(true);
  connect(cancel_, &QToolButton::clicked, this, [this] {
    if (export_ != nullptr) export_->cancel();
    session_.bench().cancel();
    for (View* v : views_) v->cancel();
    show_progress();
  });
  // A bar that comes lays out the whole window anew, which takes longer than most predictions.
  soon_ = new QTimer(this);
  soon_->setSingleShot(true);
  soon_->setInterval(kSoonMs);
  connect(soon_, &QTimer::timeout, this, [this] {
    progress_->show();
    show_progress();
  });
  memory_ = new HeldMemory([this] { give_up(); }, this);
  statusBar()->addWidget(what_, 1);
  statusBar()->addPermanentWidget(progress_);
  statusBar()->addPermanentWidget(cancel_);
}

// Of a window at rest: what is drawn or computed again when somebody asks for it.
void MainWindow::give_up() {
  if (export_ != nullptr) return;  // it draws all of them
  for (View* v : views_)
    if (v != graph_ && !is_seen(*v)) v->put_away();
  session_.bench().cache().keep_latest(kResultsAtRest);
}

void MainWindow::connect_session() {
  connect(&session_, &Session::document_changed, this, &MainWindow::show_document);
  connect(&session_, &Session::results_changed, this, &MainWindow::refresh_views);
  connect(&session_, &Session::progress_changed, this, &MainWindow::show_progress);
  connect(&session_, &Session::highlight_changed, this, [this] {
    const Highlight linked = session_.bench().highlighted();
    for (View* v : views_) {
      if (is_seen(*v) || v == graph_) v->show_highlight(linked);
    }
    runs_->show_highlight(linked);
    details_->refresh();
  });
  connect(&session_, &Session::preview_changed, details_, &DetailsPanel::refresh);
  connect(&session_, &Session::failed, this, &MainWindow::fail);
  connect(&session_, &Session::noted, this,
          [this](const QString& text) { statusBar()->showMessage(text, kNoteMs); });
  for (View* v : views_) {
    connect(v, &View::hovered, &session_, &Session::hover);
    connect(v, &View::selected, &session_, &Session::select);
    connect(v, &View::busy_changed, this, &MainWindow::show_progress);
  }
  connect(files_, &FileActions::export_requested, this, &MainWindow::export_all);
}

void MainWindow::refresh_view(View* v) {
  stale_.erase(v);
  v->refresh();
  v->show_highlight(session_.bench().highlighted());
}

void MainWindow::refresh_views() {
  runs_->refresh();
  for (View* v : views_) {
    if (is_seen(*v) || v == graph_) {
      refresh_view(v);
    } else {
      stale_.insert(v);
    }
  }
  details_->refresh();
}

void MainWindow::show_document() {
  const Document& document = session_.bench().document();
  const std::filesystem::path& path = session_.path();
  const std::string name = !path.empty()            ? path.filename().string()
                           : document.title.empty() ? std::string("comparison")
                                                    : document.title;
  setWindowTitle(to_qt(name) + "[*] — fuseline");
  setWindowFilePath({});
  setWindowModified(session_.is_dirty());
  try {
    what_->setText(to_qt(describe(resolve(document.setup))));
  } catch (const InputError& error) {
    what_->setText(message_of(error).section('\n', 0, 0));
  }
  what_->setToolTip(what_->text());
  runs_->refresh();
  setup_->refresh();
  what_if_->refresh();
  update_undo();
}

void MainWindow::show_progress() {
  if (progress_ == nullptr) return;  // the window is being made
  const bool computing = session_.bench().is_computing();
  const bool views_busy =
      std::ranges::any_of(views_, [](const View* v) { return v->is_busy() && is_seen(*v); });
  const bool exporting = export_ != nullptr;
  const bool busy = computing || views_busy;
  if (!busy) soon_->stop();
  if (busy && progress_->isHidden() && !soon_->isActive()) soon_->start();
  memory_->worked();
  const bool shows = exporting || (busy && !soon_->isActive());
  progress_->setVisible(shows);
  cancel_->setVisible(shows);
  progress_->setRange(0, computing || exporting ? 100 : 0);
  if (exporting) {
    progress_->setValue(static_cast<int>(100 * export_->progress()));
    progress_->setToolTip(tr("exporting"));
  } else if (computing) {
    progress_->setValue(static_cast<int>(100 * session_.bench().progress()));
    progress_->setToolTip(tr("predicting"));
  }
}

void MainWindow::fail(const QString& title, const QString& text) {
  auto* box = new QMessageBox(QMessageBox::Warning, title, title, QMessageBox::Ok, this);
  box->setObjectName("failure");
  box->setInformativeText(text);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!files_->may_lose_work()) {
    event->ignore();
    return;
  }
  store_layout();
  session_.end_without_autosave();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (FileActions::takes(*event->mimeData())) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  files_->drop(*event->mimeData());
}

void MainWindow::keyPressEvent(QKeyEvent* event) {
  if (event->text() == "?") {
    show_shortcuts();
  } else if (event->key() == Qt::Key_Escape) {
    if (session_.bench().is_computing() || export_ != nullptr) {
      cancel_->click();
    } else {
      graph_->edit_bar().hide();
      session_.hover({});
      session_.select({});
    }
  } else {
    QMainWindow::keyPressEvent(event);
  }
}

void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && details_ != nullptr) details_->refresh();
}

}  // namespace fuseline::gui
