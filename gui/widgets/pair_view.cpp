#include "gui/widgets/pair_view.h"

#include <QComboBox>
#include <QLabel>
#include <QPainter>
#include <QScrollBar>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/model/graph_parts.h"
#include "gui/widgets/graph_columns.h"
#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

namespace {

constexpr int kMostWords = 3;  // differences that are said above the graphs; the tooltip has all

}  // namespace

PairView::PairView(Session& session, QWidget* parent)
    : View(session.bench(), parent),
      words_(new QLabel(this)),
      parts_(new PartsButton(this)),
      landscape_(new QToolButton(this)),
      sides_(new QBoxLayout(QBoxLayout::LeftToRight)),
      work_(this,
            [](const Request& r, const std::stop_token& stop, const Progress&) {
              Laid laid{.pair = r.pair, .closed = r.closed};
              if (!r.pair.problem.empty()) return laid;
              for (const std::size_t side : {0U, 1U}) {
                throw_if_stopped(stop);
                BlockGraph& graph = laid.graphs[side];
                graph = with_closed_parts(side == 0 ? r.pair.left : r.pair.right, r.closed);
                graph.landscape = r.landscape;
                laid.layouts[side] = gui::layout(graph);
              }
              return laid;
            },
            {.done = [this](Laid laid) { draw(std::move(laid)); },
             .failed = [this](const std::string& why) { words_->setText(to_qt(why)); },
             .changed = [this] { emit busy_changed(); }}) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(2);
  words_->setObjectName("pair-words");
  words_->setWordWrap(true);
  words_->setMargin(4);
  make_tools();
  column->addWidget(words_);
  sides_->setSpacing(2);
  column->addLayout(sides_, 1);
  for (const int side : {0, 1}) {
    const auto i = static_cast<std::size_t>(side);
    auto* one = new QVBoxLayout;
    runs_[i] = new QComboBox(this);
    runs_[i]->setObjectName(side == 0 ? "pair-left" : "pair-right");
    runs_[i]->setAccessibleName(side == 0 ? tr("Run on the left") : tr("Run on the right"));
    runs_[i]->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    runs_[i]->setMinimumContentsLength(8);
    canvases_[i] = new GraphCanvas(this);
    canvases_[i]->setAccessibleName(side == 0 ? tr("Left graph") : tr("Right graph"));
    canvases_[i]->setObjectName(side == 0 ? "pair-canvas-left" : "pair-canvas-right");
    maps_[i] = new Minimap(*canvases_[i]);
    connect(canvases_[i], &GraphCanvas::zoomed, this, [this, side] { follow(side); });
    connect(&canvases_[i]->graph(), &GraphScene::part_clicked, parts_, &PartsButton::toggle);
    one->addWidget(runs_[i]);
    one->addWidget(canvases_[i], 1);
    sides_->addLayout(one, 1);
    connect(runs_[i], QOverload<int>::of(&QComboBox::activated), this, [this] { refresh(); });
    for (QScrollBar* bar :
         {canvases_[i]->horizontalScrollBar(), canvases_[i]->verticalScrollBar()}) {
      connect(bar, &QScrollBar::valueChanged, this, [this, side] { follow(side); });
      connect(bar, &QScrollBar::rangeChanged, this, [this, side] { follow(side); });
    }
    connect(&canvases_[i]->graph(), &GraphScene::hovered, this, &View::hovered);
    connect(&canvases_[i]->graph(), &GraphScene::clicked, this, &View::selected);
    connect(&canvases_[i]->graph(), &GraphScene::edge_clicked, this,
            [this](const GraphEdge& edge) { emit selected(edge.thing); });
  }
  setFocusProxy(canvases_[0]);
}

void PairView::make_tools() {
  auto* tools = new QHBoxLayout;
  tools->setContentsMargins(4, 2, 4, 0);
  parts_->setObjectName("pair-parts");
  parts_->setAutoRaise(true);
  landscape_->setObjectName("pair-landscape");
  landscape_->setText(tr("Landscape"));
  landscape_->setToolTip(tr("Both from left to right, in place of from top to bottom"));
  landscape_->setCheckable(true);
  landscape_->setAutoRaise(true);
  tools->addWidget(parts_);
  tools->addWidget(landscape_);
  tools->addStretch(1);
  static_cast<QVBoxLayout*>(layout())->addLayout(tools);
  connect(parts_, &PartsButton::changed, this, [this] { refresh(); });
  // Wide graphs have more room over each other.
  connect(landscape_, &QToolButton::toggled, this, [this](bool on) {
    sides_->setDirection(on ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    refresh();
  });
}

QString PairView::hint() const {
  return tr(
      "The baseline on the left, the shown run on the right, or any two runs. What differs is "
      "coloured: operators that the other has not, and edges that only one keeps in a kernel. Both "
      "zoom and move together. A double click makes one box of a part of the block, and opens it.");
}

// What a person chose stays; else the baseline and the shown run, or the last one where that is the
// baseline.
void PairView::fill_runs() {
  const Results& results = bench().results();
  std::array<int, 2> chosen{-1, -1};
  for (const std::size_t side : {0U, 1U}) {
    const QSignalBlocker quiet(runs_[side]);
    const QVariant before = runs_[side]->currentData();
    runs_[side]->clear();
    for (const RunView& view : results.runs)
      runs_[side]->addItem(to_qt(view.label()), view.run.id.value);
    chosen[side] = before.isValid() ? runs_[side]->findData(before) : -1;
  }
  const auto index_of = [&](RunId id) { return runs_[0]->findData(id.value); };
  if (chosen[0] < 0) chosen[0] = index_of(results.baseline);
  if (chosen[1] < 0) {
    RunId other = bench().shown_run();
    for (const RunView& view : results.runs)
      if (other == results.baseline && !view.run.is_measurement() &&
          view.run.id != results.baseline)
        chosen[1] = index_of(view.run.id);
    if (other != results.baseline || chosen[1] < 0) chosen[1] = index_of(other);
  }
  for (const std::size_t side : {0U, 1U}) {
    const QSignalBlocker quiet(runs_[side]);
    runs_[side]->setCurrentIndex(std::max(0, chosen[side]));
  }
}

void PairView::show_runs(RunId left, RunId right) {
  fill_runs();
  runs_[0]->setCurrentIndex(runs_[0]->findData(left.value));
  runs_[1]->setCurrentIndex(runs_[1]->findData(right.value));
  refresh();
}

void PairView::refresh() {
  fill_runs();
  const RunView* left = bench().results().find(RunId{runs_[0]->currentData().toInt()});
  const RunView* right = bench().results().find(RunId{runs_[1]->currentData().toInt()});
  if (left == nullptr || right == nullptr) return;
  Request request{graph_pair(*left, *right), parts_->closed(), landscape_->isChecked()};
  std::vector<std::string> parts = part_names(request.pair.left);
  for (const std::string& part : part_names(request.pair.right))
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  parts_->offer(std::move(parts));
  work_.start(std::move(request));
}

void PairView::draw(Laid laid) {
  pair_ = std::move(laid.pair);
  closed_ = std::move(laid.closed);
  QStringList lines;
  for (const std::string& line : pair_.lines) lines << to_qt(line);
  words_->setToolTip(lines.join('\n'));
  const int more = lines.size() - kMostWords;
  if (more > 0) lines = lines.mid(0, kMostWords) << tr("and %1 more").arg(more);
  words_->setText(pair_.problem.empty() ? lines.join("; ") : to_qt(pair_.problem));
  for (const std::size_t side : {0U, 1U}) {
    GraphScene& scene = canvases_[side]->graph();
    if (pair_.problem.empty()) {
      scene.show_graph(laid.graphs[side], laid.layouts[side], theme());
    } else {
      scene.show_problem(to_qt(pair_.problem), theme());
    }
    canvases_[side]->show_start();
  }
  mark_differences();
  for (Minimap* map : maps_) map->follow();
}

void PairView::mark_differences() {
  for (const std::size_t side : {0U, 1U}) {
    const GraphDifference d = with_closed_parts(side == 0 ? pair_.only_left : pair_.only_right,
                                                side == 0 ? pair_.left : pair_.right, closed_);
    Highlight marks;
    marks.operators = d.operators;
    marks.edges = d.edges;
    canvases_[side]->graph().show_highlight(marks, {});
  }
}

// What another view points at would hide the differences: they stay.
void PairView::show_highlight(const Highlight&) {}

void PairView::restyle() {
  for (const GraphCanvas* canvas : canvases_) canvas->graph().restyle(theme());
}

// The other side shows the same part of its graph, as large.
void PairView::follow(int side) {
  if (following_) return;
  following_ = true;
  const GraphCanvas& led = *canvases_[static_cast<std::size_t>(side)];
  GraphCanvas& other = *canvases_[static_cast<std::size_t>(1 - side)];
  other.setTransform(led.transform());
  for (const bool upright : {false, true}) {
    const QScrollBar* from = upright ? led.verticalScrollBar() : led.horizontalScrollBar();
    QScrollBar* to = upright ? other.verticalScrollBar() : other.horizontalScrollBar();
    const int range = from->maximum() - from->minimum();
    const double part = range > 0 ? double(from->value() - from->minimum()) / range : 0.5;
    to->setValue(to->minimum() + static_cast<int>(part * (to->maximum() - to->minimum()) + 0.5));
  }
  following_ = false;
}

void PairView::paint_to(QPainter& painter, QSize size) {
  constexpr int kMargin = 14;
  const Theme t = theme();
  painter.fillRect(QRect(QPoint(), size), t.background());
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(t.colour(ColourRole::text));
  if (!pair_.problem.empty() || pair_.left.nodes.empty()) {
    painter.drawText(
        QRect(QPoint(), size).adjusted(kMargin, kMargin, -kMargin, -kMargin), Qt::TextWordWrap,
        pair_.problem.empty() ? tr("the graphs are being laid out") : to_qt(pair_.problem));
    return;
  }
  const int foot = 3 * QFontMetrics(small_font(font())).height();
  const bool over = landscape_->isChecked();
  const int wide = over ? size.width() : size.width() / 2;
  const int high = over ? (size.height() - foot) / 2 : size.height() - foot;
  for (const int side : {0, 1}) {
    painter.setFont(heading_font(font()));
    const int head = QFontMetrics(painter.font()).height() + 2 * kMargin;
    const QRect area((over ? 0 : side * wide) + kMargin, over ? side * high : 0, wide - 2 * kMargin,
                     high);
    painter.setPen(t.colour(ColourRole::text));
    painter.drawText(QRect(area.left(), area.top(), area.width(), head),
                     Qt::AlignLeft | Qt::AlignVCenter,
                     to_qt(side == 0 ? pair_.left.title : pair_.right.title));
    const QRectF place(area.left(), area.top() + head, area.width(), high - head - kMargin);
    GraphScene& scene = canvases_[static_cast<std::size_t>(side)]->graph();
    paint_graph(painter, scene, place, t);
  }
  painter.setFont(small_font(font()));
  painter.setPen(t.colour(ColourRole::muted));
  painter.drawText(QRect(kMargin, size.height() - foot - 4, size.width() - 2 * kMargin, foot),
                   int(Qt::TextWordWrap) | int(Qt::AlignTop), words_->text());
}

std::vector<Table> PairView::tables() const {
  return pair_.problem.empty() && !pair_.left.nodes.empty() ? std::vector<Table>{to_table(pair_)}
                                                            : std::vector<Table>{};
}

}  // namespace fuseline::gui
