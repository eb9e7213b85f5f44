#include "gui/widgets/charts/memory_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QMouseEvent>
#include <QPainter>
#include <QSignalBlocker>
#include <QToolTip>
#include <algorithm>

#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

MemoryCanvas::MemoryCanvas(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
}

void MemoryCanvas::set_charts(std::vector<MemoryChart> charts) {
  charts_ = std::move(charts);
  update();
}

void MemoryCanvas::set_highlight(const Highlight& highlight) {
  highlight_ = highlight;
  update();
}

void MemoryCanvas::paint_on(QPainter& painter, const QRect& area) const {
  draw_memory(painter, area, charts_, Theme(palette()), font(), highlight_);
}

void MemoryCanvas::paintEvent(QPaintEvent* /*event*/) {
  QPainter painter(this);
  parts_ = draw_memory(painter, rect(), charts_, Theme(palette()), font(), highlight_);
  if (!hasFocus()) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

const MemoryPart* MemoryCanvas::part_at(const QPointF& at) const {
  for (const MemoryPart& part : parts_) {
    if (part.area.contains(at)) return &part;
  }
  return nullptr;
}

void MemoryCanvas::hover(const Thing& thing) {
  if (thing == hovered_) return;
  hovered_ = thing;
  emit hovered(thing);
}

void MemoryCanvas::mouseMoveEvent(QMouseEvent* event) {
  const MemoryPart* part = part_at(event->localPos());
  hover(part == nullptr ? Thing{} : part->thing);
  if (part == nullptr) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(event->globalPos(), QString::fromStdString(part->tooltip), this,
                       part->area.toAlignedRect());
  }
}

void MemoryCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  const MemoryPart* part = part_at(event->localPos());
  emit selected(part == nullptr ? Thing{} : part->thing);
}

void MemoryCanvas::keyPressEvent(QKeyEvent* event) {
  static constexpr MemoryLevel kLevels[] = {MemoryLevel::registers, MemoryLevel::smem,
                                            MemoryLevel::l2, MemoryLevel::hbm};
  const int by = event->key() == Qt::Key_Down || event->key() == Qt::Key_Right ? 1
                 : event->key() == Qt::Key_Up || event->key() == Qt::Key_Left  ? -1
                                                                               : 0;
  if (by != 0) {
    int now = by > 0 ? -1 : 4;
    for (int i = 0; i < 4; ++i) {
      if (hovered_ == level_thing(kLevels[i])) now = i;
    }
    hover(level_thing(kLevels[std::clamp(now + by, 0, 3)]));
  } else if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Space) {
    emit selected(hovered_);
  } else if (event->key() == Qt::Key_Escape && !hovered_.is_nothing()) {
    hover({});
  } else {
    QWidget::keyPressEvent(event);
  }
}

void MemoryCanvas::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  hover({});
}

MemoryView::MemoryView(Workbench& bench, QWidget* parent)
    : ChartView(bench, parent),
      in_motion_(new QCheckBox(tr("In motion"), this)),
      kernel_(&add_choice(tr("Of"), {}, tr("the whole block, or one kernel of the shown run"))),
      canvas_(new MemoryCanvas(this)) {
  body().addWidget(canvas_, 1);
  controls().insertWidget(controls().count() - 3, in_motion_);
  in_motion_->setObjectName("memory-in-motion");
  in_motion_->setToolTip(
      tr("the kernels that run at the time of Tiles in motion: of the shown run, and of the one "
         "beside it"));
  connect(in_motion_, &QCheckBox::toggled, this, [this](bool on) {
    kernel_->setEnabled(!on);
    draw();
  });
  setFocusProxy(canvas_);
  canvas_->setAccessibleName(title());
  connect(canvas_, &MemoryCanvas::hovered, this, &View::hovered);
  connect(canvas_, &MemoryCanvas::selected, this, &View::selected);
  connect(kernel_, QOverload<int>::of(&QComboBox::currentIndexChanged), this, [this] { draw(); });
}

QString MemoryView::hint() const {
  return tr(
      "What goes between registers, shared memory, L2 and HBM, and how much of each rate is "
      "used. The shown run first, then the baseline and the others.");
}

void MemoryView::fill_kernels() {
  const QSignalBlocker quiet(kernel_);
  const int before = kernel_->currentIndex();
  kernel_->clear();
  kernel_->addItem(tr("the whole block"));
  const RunView* view = bench().results().find(bench().shown_run());
  if (view != nullptr && view->ok()) {
    for (const KernelRow& row : view->result->kernels) {
      kernel_->addItem(QString::fromStdString(row.estimate.name));
    }
  }
  kernel_->setCurrentIndex(before > 0 && before < kernel_->count() ? before : 0);
}

void MemoryView::refresh() {
  fill_kernels();
  draw();
}

void MemoryView::follow(const std::vector<MovingKernel>& now) {
  if (now.empty()) return;  // put away: the last moment stays
  moving_ = now;
  if (in_motion_->isChecked()) draw();
}

std::vector<MemoryChart> MemoryView::moving_charts() {
  std::vector<MemoryChart> charts;
  for (const MovingKernel& moving : moving_) {
    const RunView* view = bench().results().find(moving.run);
    if (view == nullptr || !view->ok() || moving.launch >= view->result->kernels.size()) continue;
    charts.push_back(memory_chart(*view, moving.launch));
    names_.push_back(view->label());
  }
  if (!charts.empty()) return charts;
  charts.emplace_back();
  charts.back().title = title().toStdString();
  charts.back().problem = "nothing moves yet: open Tiles in motion";
  return charts;
}

void MemoryView::draw() {
  const Results& results = bench().results();
  std::vector<MemoryChart> charts;
  names_.clear();
  const std::string problem = problem_of(results);
  if (!problem.empty()) {
    MemoryChart empty;
    empty.title = title().toStdString();
    empty.problem = problem;
    charts.push_back(std::move(empty));
    canvas_->set_charts(std::move(charts));
    return;
  }
  if (in_motion_->isChecked()) {
    canvas_->set_charts(moving_charts());
    return;
  }
  const RunId shown = bench().shown_run();
  const int chosen = kernel_->currentIndex();
  std::optional<std::size_t> kernel;
  Highlight same;
  if (chosen > 0) {
    kernel = static_cast<std::size_t>(chosen - 1);
    same = highlight(results, kernel_thing(shown, *kernel));
  }
  std::vector<const RunView*> order;
  for (const RunView& view : results.runs) order.push_back(&view);
  std::ranges::stable_sort(order, {}, [&](const RunView* v) {
    return v->run.id == shown              ? 0
           : v->run.id == results.baseline ? 1
           : v->run.is_measurement()       ? 3
                                           : 2;
  });
  for (const RunView* view : order) {
    std::optional<std::size_t> own;
    if (kernel && view->run.id == shown) {
      own = kernel;
    } else if (kernel) {
      const auto there = same.kernels.find(view->run.id);
      if (there == same.kernels.end() || there->second.empty()) continue;
      own = *there->second.begin();
    }
    charts.push_back(memory_chart(*view, own));
    if (charts.back().title.empty()) charts.back().title = view->label();
    names_.push_back(view->label());
  }
  canvas_->set_charts(std::move(charts));
}

void MemoryView::show_highlight(const Highlight& highlight) {
  canvas_->set_highlight(highlight);
  // A selected kernel is the one that is wanted, when it is of the shown run.
  const Thing& selected = bench().selection().selected;
  if (selected.kind == ThingKind::kernel && selected.run == bench().shown_run()) {
    const int at = static_cast<int>(selected.kernel) + 1;
    if (at < kernel_->count()) kernel_->setCurrentIndex(at);
  }
}

void MemoryView::restyle() {
  ChartView::restyle();
  canvas_->update();
}

void MemoryView::paint_content(QPainter& painter, const QRect& area) {
  canvas_->paint_on(painter, area);
}

std::vector<Table> MemoryView::tables() const {
  std::vector<Table> tables;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!canvas_->charts()[i].problem.empty()) continue;
    tables.push_back(to_table(canvas_->charts()[i]));
    tables.back().name += "-" + file_stem(names_[i]);
  }
  return tables;
}

}  // namespace fuseline::gui
