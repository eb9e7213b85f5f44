#include "gui/widgets/graph_view.h"

#include <QCursor>
#include <QMetaObject>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/compute.h"
#include "gui/widgets/graph_columns.h"
#include "gui/widgets/qt_text.h"
#include "gui/widgets/short_combo.h"

namespace fuseline::gui {

namespace {

constexpr std::size_t kMostLayouts = 16;
constexpr int kMouseRoom = 24;  // px around the mouse that the strip leaves free

std::vector<OnChipEdge> edges_to_judge(const BlockGraph& graph) {
  std::vector<OnChipEdge> edges;
  for (const GraphEdge& edge : graph.edges) {
    if (edge.can_toggle) edges.push_back(edge.choice);
  }
  return edges;
}

}  // namespace

struct GraphView::Inbox {
  std::mutex mutex;
  std::optional<GraphLayout> layout;
  QString failure;
};

GraphView::GraphView(Session& session, QWidget* parent, std::string dot)
    : View(session.bench(), parent),
      session_(session),
      runs_(new ShortCombo(this)),
      rewrites_(new QToolButton(this)),
      parts_(new PartsButton(this)),
      bar_(new EditBar(this)),
      canvas_(new GraphCanvas(this)),
      drag_(new OperatorDrag(session, *canvas_)),
      map_(new Minimap(*canvas_)),
      inbox_(std::make_shared<Inbox>()),
      judge_(this,
             [](const ChanceRequest& r, const std::stop_token& stop, const Progress&) {
               return Chances{r.of, edge_chances(r.document, r.run, r.edges, stop)};
             },
             {.done =
                  [this](Chances chances) {
                    chances_ = std::move(chances);
                    canvas_->graph().show_chances(chances_.chances);
                  },
              .failed = [this](const std::string& why) { bar_->show_hint(to_qt(why)); },
              .changed = {}}),
      search_(this,
              [](const SearchRequest& r, const std::stop_token& stop, const Progress& progress) {
                const std::shared_ptr<void> end(nullptr, [&](void*) { r.watch->end(); });
                return best_fusion(r.document, r.run, r.seconds, stop, progress, r.watch.get());
              },
              {.done = [this](const BestFusion& best) { take_best(best); },
               .failed = [this](const std::string& why) { bar_->show_hint(to_qt(why)); },
               .changed = [this] { emit busy_changed(); }}) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  make_tools();
  column->addWidget(canvas_, 1);
  column->addWidget(new GraphLegend(this));
  setFocusProxy(canvas_);

  const auto wake = [this] {
    QMetaObject::invokeMethod(
        this, [this] { take_layout(); }, Qt::QueuedConnection);
  };
  Layouter::Callbacks callbacks;
  callbacks.done = [inbox = inbox_, wake](Layouter::Id, GraphLayout layout) {
    const std::lock_guard lock(inbox->mutex);
    inbox->layout = std::move(layout);
    wake();
  };
  callbacks.failed = [inbox = inbox_, wake](Layouter::Id, const std::exception_ptr& error) {
    const std::lock_guard lock(inbox->mutex);
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      inbox->failure = message_of(e);
    }
    wake();
  };
  layouter_ = std::make_unique<Layouter>(
      [program = std::move(dot)](const BlockGraph& graph, const std::stop_token&, const Progress&) {
        return gui::layout(graph, program);
      },
      std::move(callbacks));

  GraphScene& scene = canvas_->graph();
  connect(&scene, &GraphScene::hovered, this, &View::hovered);
  connect(&scene, &GraphScene::clicked, this, &View::selected);
  connect(canvas_, &GraphCanvas::edge_chosen, this,
          [this](const GraphEdge& edge) { emit selected(edge.thing); });
  const auto toggle = [this](const GraphEdge& edge) {
    const GraphEdge copy = edge;
    emit selected(copy.thing);
    session_.toggle_edge(copy.choice);
  };
  connect(&scene, &GraphScene::edge_clicked, this, toggle);
  connect(canvas_, &GraphCanvas::toggle_requested, this, toggle);
  connect(canvas_, &GraphCanvas::lassoed, this,
          [this](const std::vector<std::string>& operators) { session_.fuse_all(operators); });
  connect_drag();
  connect(bar_, &EditBar::came, this, &GraphView::place_bar);
  connect(&session_, &Session::edit_judged, bar_, &EditBar::show_notice);
  connect(&session_, &Session::edit_outdated, bar_, &QWidget::hide);
  connect(&session_, &Session::preview_changed, this, [this](const OnChipEdge& edge) {
    const EdgePreview* preview = session_.preview(edge);
    EdgeItem* item = canvas_->graph().find_edge(edge);
    if (preview != nullptr && item != nullptr) item->set_preview(to_qt(preview->text));
  });
  connect(bar_, &EditBar::chosen, this,
          [this](const Suggestion& suggestion) { session_.accept(suggestion); });
}

GraphView::~GraphView() = default;

// The mouse carries an operator that it was pressed on. By keys: M lifts the operator that is
// chosen, arrows aim, Enter drops.
void GraphView::connect_drag() {
  connect(canvas_, &GraphCanvas::lifted, drag_, [this](const std::string& op) {
    bar_->hide();  // what it says is about another edit
    session_.hover({});
    drag_->lift(op);
  });
  connect(canvas_, &GraphCanvas::carried, drag_, &OperatorDrag::carry);
  connect(canvas_, &GraphCanvas::put_down, drag_, &OperatorDrag::put);
  connect(canvas_, &GraphCanvas::put_back, drag_, &OperatorDrag::cancel);
  connect(canvas_, &GraphCanvas::target_stepped, drag_, &OperatorDrag::step);
  connect(canvas_, &GraphCanvas::lift_requested, drag_, [this] {
    const Thing& chosen = bench().selection().selected;
    if (chosen.kind == ThingKind::op) {
      drag_->lift(chosen.name);
    } else if (const EdgeItem* edge = canvas_->graph().chosen()) {
      drag_->lift(edge->edge().choice.to);
    } else {
      bar_->show_hint(tr("Choose an operator first: click it, or Ctrl and an arrow key"));
    }
  });
  connect(canvas_, &GraphCanvas::operator_stepped, drag_, [this](int by) {
    const Thing& chosen = bench().selection().selected;
    const std::string next = canvas_->graph().operator_after(
        chosen.kind == ThingKind::op ? chosen.name : std::string(), by);
    if (next.empty()) return;
    canvas_->ensureVisible(canvas_->graph().operator_place(next), 30, 30);
    canvas_->setAccessibleDescription(
        tr("operator %1; M moves it to another kernel").arg(to_qt(next)));
    emit selected(op_thing(next));
  });
}

QString GraphView::hint() const {
  return tr(
      "Click an edge with a plus to keep its tensor on chip, a dashed one to split there; "
      "Shift+drag "
      "draws a lasso that fuses all inside. Drag an operator to another kernel, or out of its own. "
      "Wheel zooms, drag beside the operators moves, 0 fits.");
}

void GraphView::set_waiting(bool waiting) {
  if (waiting == waiting_) return;
  waiting_ = waiting;
  emit busy_changed();
}

void GraphView::refresh() {
  drag_->cancel();  // what it was lifted from is drawn anew
  fill_runs();
  const RunView* view = bench().results().find(bench().shown_run());
  if (view == nullptr) return;  // not computed yet: what is drawn stays
  graph_ = parts_->close_in(block_graph(*view));
  graph_.landscape = landscape_;
  if (!graph_.problem.empty()) {
    layouter_->cancel();
    judge_.cancel();
    set_waiting(false);
    drawn_.clear();
    canvas_->graph().show_problem(to_qt(graph_.problem), theme());
    canvas_->fit();
    return;
  }
  canvas_->set_can_carry(!view->run.is_measurement());
  judge_edges(*view);
  const std::string text = dot_text(graph_);
  if (const auto found = known_.find(text); found != known_.end()) {
    layouter_->cancel();
    set_waiting(false);
    draw(found->second);
    return;
  }
  set_waiting(true);
  layouter_->submit(graph_);
}

// Off the window's thread: marks come some milliseconds after the picture.
void GraphView::judge_edges(const RunView& view) {
  judge_.cancel();
  ChanceRequest request{bench().document(), view.run.id, edges_to_judge(graph_), chances_key(view)};
  if (request.of == chances_.of) return;
  // Results may be of a document whose run is gone.
  if (request.document.runs.find(view.run.id) == nullptr || view.run.is_measurement()) return;
  judge_.start(std::move(request));
}

// What can share a kernel is the same on all GPUs: a slider of the machine changes no mark.
std::string GraphView::chances_key(const RunView& view) const {
  Document document = bench().document();
  Run run = view.run;
  Setup& setup = run.setup ? *run.setup : document.setup;
  setup.gpu.clear();
  setup.what_if = {};
  std::string key = result_key(document, run);
  for (const OnChipEdge& edge : edges_to_judge(graph_)) key += "\nedge " + edge_text(edge);
  return key;
}

void GraphView::take_layout() {
  std::optional<GraphLayout> layout;
  QString failure;
  {
    const std::lock_guard lock(inbox_->mutex);
    std::swap(layout, inbox_->layout);
    std::swap(failure, inbox_->failure);
  }
  if (!failure.isEmpty()) {
    bar_->show_hint(failure);
    layout = layered_layout(graph_);
  }
  if (!layout || graph_.nodes.size() != layout->nodes.size()) return;
  if (known_.size() >= kMostLayouts) known_.clear();
  known_[dot_text(graph_)] = *layout;
  draw(*layout);
  show_highlight(bench().highlighted());
  set_waiting(false);
}

void GraphView::draw(const GraphLayout& layout) {
  canvas_->graph().show_graph(graph_, layout, theme());
  const RunView* view = bench().results().find(bench().shown_run());
  if (view != nullptr && chances_key(*view) == chances_.of)
    canvas_->graph().show_chances(chances_.chances);
  map_->follow();
  canvas_->setAccessibleName(to_qt(graph_.title));
  const auto operators = std::ranges::count(graph_.nodes, false, &GraphNode::is_tensor);
  canvas_->setAccessibleDescription(tr("%1 operators; %2 kernels hold two or more of them. Arrow "
                                       "keys choose an edge, Enter fuses or "
                                       "splits it.")
                                        .arg(operators)
                                        .arg(graph_.groups.size()));
  const std::string text = dot_text(graph_);
  if (text != drawn_) canvas_->show_start();
  drawn_ = text;
  if (!layout.note.empty()) bar_->show_hint(to_qt(layout.note));
}

std::optional<OnChipEdge> GraphView::last_fusable_edge() const {
  std::optional<OnChipEdge> last;
  for (const GraphEdge& edge : graph_.edges) {
    const EdgeItem* item = canvas_->graph().find_edge(edge.choice);
    if (edge.can_toggle && item != nullptr && item->can_be_fused()) last = edge.choice;
  }
  return last;
}

void GraphView::search_best(double seconds) {
  const Run* run = bench().document().runs.find(bench().shown_run());
  if (run == nullptr || search_.is_busy()) return;
  bar_->show_hint(tr("Searching the best fusion of the block; Cancel in the status bar stops it"));
  auto watch = std::make_shared<SearchWatch>();
  watch->begin({});  // who follows it waits for its first plan
  const Run of = *run;
  search_.start({bench().document(), of, seconds, watch});
  emit search_began(watch, of);
}

void GraphView::take_best(const BestFusion& best) {
  if (!best.problem.empty()) {
    bar_->show_hint(to_qt(best.problem));
    return;
  }
  session_.act([&](Workbench& b) {
    b.show_run(b.add_run({.name = "best fusion",
                          .policy = kCustomPolicy,
                          .custom = best.custom,
                          .setup = best.setup}));
  });
  bar_->show_hint(to_qt(best.text));
}

// Over the lower end of the graph; over the upper one while the mouse is below: what it points at
// stays in sight.
void GraphView::place_bar() {
  const QRect area = canvas_->geometry();
  const int height = std::min(bar_->height_for(area.width()), area.height() * 3 / 5);
  const QPoint mouse = mapFromGlobal(QCursor::pos());
  const bool below = area.contains(mouse) && mouse.y() > area.bottom() - height - kMouseRoom;
  bar_->setGeometry(area.left(), below ? area.top() : area.bottom() + 1 - height, area.width(),
                    height);
}

void GraphView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  layout()->activate();
  if (bar_->isVisible()) place_bar();
}

void GraphView::finish() {
  layouter_->wait_idle();
  take_layout();
  judge_.finish();
  drag_->finish();
}

void GraphView::show_highlight(const Highlight& highlight) {
  canvas_->graph().show_highlight(highlight, bench().shown_run());
}

void GraphView::restyle() {
  if (canvas_ != nullptr) canvas_->graph().restyle(theme());
}

void GraphView::paint_to(QPainter& painter, QSize size) {
  constexpr int kMargin = kPictureMargin;
  painter.setRenderHint(QPainter::Antialiasing);
  const int head = paint_title(painter, size, to_qt(graph_.title));
  const int foot = QFontMetrics(small_font(font())).height() + kMargin;
  const QRectF area(kMargin, head, size.width() - 2 * kMargin,
                    size.height() - head - foot - kMargin);
  paint_graph(painter, canvas_->graph(), area, theme());
  draw_graph_legend(
      painter,
      QRectF(kMargin, size.height() - foot, size.width() - 2 * kMargin, foot - kMargin / 2.0),
      theme(), font());
}

std::vector<Table> GraphView::tables() const {
  if (!graph_.problem.empty()) return {};
  return {to_table(graph_)};
}

}  // namespace fuseline::gui
