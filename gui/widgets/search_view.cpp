#include "gui/widgets/search_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/model/text.h"
#include "gui/widgets/qt_text.h"
#include "model/custom_fusion.h"

namespace fuseline::gui {

namespace {

constexpr int kSearchLookMs = 120;

}  // namespace

SearchView::SearchView(Session& session, QWidget* parent)
    : View(session.bench(), parent),
      session_(session),
      text_(new QLabel(this)),
      start_(new QToolButton(this)),
      canvas_(new SearchCanvas(this)),
      watch_(std::make_shared<SearchWatch>()),
      work_(this,
            [&cache = session.bench().cache()](const NextQuestion& q, const std::stop_token& stop,
                                               const Progress& /*progress*/) {
              return next_edits(q, cache, stop);
            },
            {.done =
                 [this](std::vector<NextEdit> next) {
                   next_ = std::move(next);
                   const SearchState state = watch_->state();
                   canvas_->show_state(state, next_);
                   show_text(state);
                 },
             .failed = [this](const std::string& why) { text_->setText(to_qt(why)); },
             .changed = [this] { emit busy_changed(); }}) {
  text_->setObjectName("search-text");
  text_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  // Room for what comes and goes, so that the picture under it stays where it is.
  text_->setWordWrap(true);
  text_->setMinimumHeight(2 * fontMetrics().lineSpacing());
  start_->setObjectName("search-start");
  start_->setText(tr("Best fusion"));
  start_->setToolTip(tr("Search the best fusion of the shown run's block"));
  start_->setAutoRaise(true);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 4, 0);
  row->addWidget(text_, 1);
  row->addWidget(start_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->addLayout(row);
  column->addWidget(canvas_, 1);
  setFocusProxy(canvas_);
  timer_.setInterval(kSearchLookMs);
  connect(&timer_, &QTimer::timeout, this, &SearchView::look);
  connect(start_, &QToolButton::clicked, this, &SearchView::start_requested);
  connect(canvas_, &SearchCanvas::point_chosen, this, [this](std::size_t point) {
    const SearchPoint& p = canvas_->state().points[point];
    if (!p.custom) return;
    const Run run = run_of(*p.custom, "found " + short_time(p.time));
    session_.act([&](Workbench& b) { b.show_run(b.add_run(run)); });
  });
  connect(canvas_, &SearchCanvas::next_chosen, this, [this](std::size_t edit) {
    if (!asked_ || edit >= canvas_->next().size()) return;
    const OnChipEdge edge = canvas_->next()[edit].edge;
    const Run run = run_of(*asked_, "best fusion, edited");
    session_.act([&](Workbench& b) { b.show_run(b.add_run(run)); });
    session_.toggle_edge(edge);
  });
  look();
}

QString SearchView::hint() const {
  return tr(
      "Each point is a plan that the search has tried. A click on a full one makes it a run; a "
      "click "
      "on a ghost, which is the next edit, makes that edit. Arrows choose, Enter takes.");
}

Run SearchView::run_of(const CustomFusion& custom, const std::string& name) const {
  return {.name = name, .policy = kCustomPolicy, .custom = custom, .setup = run_.setup};
}

void SearchView::follow(std::shared_ptr<SearchWatch> watch, const Run& run) {
  watch_ = std::move(watch);
  run_ = run;
  seen_ = 0;
  next_.clear();
  asked_.reset();
  work_.cancel();
  timer_.start();
  look();
}

void SearchView::show_text(const SearchState& state) {
  // Before there is a plan, the sentence stands in the picture's middle.
  QString text = state.best ? to_qt(state.text) : QString();
  if (!next_.empty()) text += tr(" · next: %1").arg(to_qt(next_.front().caption));
  text_->setText(text);
  text_->setToolTip(text);
}

void SearchView::look() {
  const SearchState state = watch_->state();
  show_text(state);
  if (!state.running) timer_.stop();
  if (state.tried == seen_ && state.running) return;
  seen_ = state.tried;
  canvas_->show_state(state, next_);
  // The newest that was the best and has its edges.
  const CustomFusion* best = nullptr;
  for (const SearchPoint& p : state.points)
    if (p.custom) best = &*p.custom;
  if (best != nullptr && (!asked_ || !(*asked_ == *best))) ask_next(*best);
}

void SearchView::ask_next(const CustomFusion& custom) {
  asked_ = custom;
  next_.clear();  // those of the best before
  work_.start({session_.bench().document(), run_of(custom, "best fusion so far")});
}

void SearchView::finish() {
  look();
  work_.finish();
}

void SearchView::paint_to(QPainter& painter, QSize size) {
  const int head =
      paint_title(painter, size, canvas_->state().best ? to_qt(canvas_->state().text) : title());
  painter.setFont(font());
  canvas_->paint_on(painter, QRectF(0, head, size.width(), size.height() - head));
}

std::vector<Table> SearchView::tables() const {
  if (canvas_->state().points.empty()) return {};
  return {to_table(canvas_->state())};
}

}  // namespace fuseline::gui
