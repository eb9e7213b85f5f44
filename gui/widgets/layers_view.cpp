#include "gui/widgets/layers_view.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/widgets/qt_text.h"

namespace fuseline::gui {

LayersView::LayersView(Workbench& workbench, QWidget* parent)
    : View(workbench, parent),
      canvas_(new LayersCanvas(this)),
      what_(new QLabel(this)),
      work_(this,
            [&cache = workbench.cache()](const StackQuestion& q, const std::stop_token& stop,
                                         const Progress& /*progress*/) {
              return layer_stack(q, cache, stop);
            },
            {.done = [this](LayerStack stack) { take(std::move(stack)); },
             .failed =
                 [this](const std::string& why) {
                   LayerStack none;
                   none.problem = why;
                   take(std::move(none));
                 },
             .changed = [this] { emit busy_changed(); }}) {
  what_->setObjectName("layers-what");
  what_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  auto* row = new QHBoxLayout;
  row->setContentsMargins(8, 4, 4, 2);
  row->addWidget(what_, 1);
  const auto button = [&](const QString& text, const QString& tip, auto does) {
    auto* made = new QToolButton(this);
    made->setText(text);
    made->setToolTip(tip);
    made->setAccessibleName(tip);
    made->setAutoRaise(true);
    connect(made, &QToolButton::clicked, this, does);
    row->addWidget(made);
  };
  button(tr("Fit"), tr("Show all layers (0)"), [this] { canvas_->fit(); });
  button("+", tr("Zoom in (+)"), [this] { canvas_->zoom(1.25, QRectF(canvas_->rect()).center()); });
  button("−", tr("Zoom out (−)"), [this] { canvas_->zoom(0.8, QRectF(canvas_->rect()).center()); });
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addLayout(row);
  column->addWidget(canvas_, 1);
  setFocusProxy(canvas_);
  connect(canvas_, &LayersCanvas::hovered, this, &View::hovered);
  connect(canvas_, &LayersCanvas::clicked, this, &View::selected);
}

QString LayersView::hint() const {
  return tr(
      "Every layer of the model. From afar a layer shows what its time goes to, nearer its "
      "operators. Wheel zooms, drag moves, 0 fits; Page Up and Page Down go from layer to layer.");
}

void LayersView::refresh() {
  const RunView* view = bench().results().find(bench().shown_run());
  if (view == nullptr || view->result == asked_) return;
  asked_ = view->result;
  work_.start({bench().document(), *view});
}

void LayersView::take(LayerStack stack) {
  what_->setText(to_qt(stack.title + (stack.note.empty() ? "" : " (" + stack.note + ")")));
  what_->setToolTip(what_->text());
  canvas_->show_stack(std::move(stack));
}

void LayersView::show_highlight(const Highlight& highlight) {
  canvas_->light({highlight.operators.begin(), highlight.operators.end()});
}

void LayersView::cancel() {
  work_.cancel();
  asked_.reset();
}

void LayersView::paint_to(QPainter& painter, QSize size) {
  const LayerStack& stack = canvas_->stack();
  const int head = paint_title(painter, size, to_qt(stack.title));
  if (!stack.problem.empty()) {
    painter.setFont(font());
    painter.drawText(QRect(QPoint(), size), Qt::AlignCenter | Qt::TextWordWrap,
                     to_qt(stack.problem));
    return;
  }
  canvas_->paint_whole(painter, QRectF(kPictureMargin, head, size.width() - 2 * kPictureMargin,
                                       size.height() - head - kPictureMargin));
}

std::vector<Table> LayersView::tables() const {
  if (canvas_->stack().kinds.empty()) return {};
  return {to_table(canvas_->stack())};
}

}  // namespace fuseline::gui
