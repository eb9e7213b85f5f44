#include "gui/widgets/charts/chart_view.h"

#include <QComboBox>
#include <QLabel>
#include <QPainter>
#include <QProgressBar>
#include <QToolButton>
#include <algorithm>

#include "gui/widgets/charts/plot.h"

namespace fuseline::gui {

namespace {

// Pictures larger than that are drawn larger, and not with more room around small text.
constexpr double kComfortableWidth = 1280;
constexpr double kComfortableHeight = 800;

}  // namespace

ChartView::ChartView(Workbench& bench, QWidget* parent)
    : View(bench, parent),
      controls_(new QHBoxLayout),
      body_(new QBoxLayout(QBoxLayout::TopToBottom)),
      progress_(new QProgressBar(this)),
      cancel_(new QToolButton(this)) {
  auto* all = new QVBoxLayout(this);
  all->setContentsMargins(0, 0, 0, 0);
  all->setSpacing(0);
  controls_->setContentsMargins(8, 2, 8, 2);
  controls_->setSpacing(6);
  controls_->addStretch(1);
  progress_->setMaximumWidth(160);
  progress_->setRange(0, 1000);
  cancel_->setText(tr("Cancel"));
  controls_->addWidget(progress_);
  controls_->addWidget(cancel_);
  progress_->hide();
  cancel_->hide();
  connect(cancel_, &QToolButton::clicked, this, [this] { cancel(); });
  all->addLayout(controls_);
  all->addLayout(body_, 1);
  body_->setSpacing(0);
  setAutoFillBackground(true);
}

Plot& ChartView::add_plot(int stretch, bool side_by_side) {
  auto* plot = new Plot(this);
  side_by_side_ = side_by_side_ || side_by_side;
  body_->addWidget(plot, stretch);
  plots_.push_back(plot);
  stretches_.push_back(stretch);
  if (plots_.size() == 1) setFocusProxy(plot);
  connect(plot, &Plot::hovered, this, &View::hovered);
  connect(plot, &Plot::selected, this, &View::selected);
  return *plot;
}

QComboBox& ChartView::add_choice(const QString& label, const QStringList& texts,
                                 const QString& tooltip) {
  auto* text = new QLabel(label, this);
  auto* box = new QComboBox(this);
  box->addItems(texts);
  box->setToolTip(tooltip);
  box->setAccessibleName(label);
  box->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  text->setBuddy(box);
  const int before_stretch = controls_->count() - 3;
  controls_->insertWidget(before_stretch, text);
  controls_->insertWidget(before_stretch + 1, box);
  return *box;
}

void ChartView::show_work(bool busy, double progress, const QString& what) {
  progress_->setVisible(busy);
  cancel_->setVisible(busy);
  progress_->setFormat(what + QStringLiteral(" %p %"));
  progress_->setValue(static_cast<int>(1000 * progress));
  emit busy_changed();
}

void ChartView::show_highlight(const Highlight& highlight) {
  for (Plot* plot : plots_) plot->set_highlight(highlight);
}

void ChartView::put_away() {
  for (Plot* plot : plots_) plot->give_up();
}

void ChartView::restyle() {
  for (Plot* plot : plots_) plot->set_style(theme(), font());
  update();
}

bool ChartView::is_side_by_side(QSize size) const {
  return side_by_side_ && size.width() >= 540 && size.width() > 1.2 * size.height();
}

void ChartView::resizeEvent(QResizeEvent* event) {
  View::resizeEvent(event);
  body_->setDirection(is_side_by_side(size()) ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
}

void ChartView::paint_to(QPainter& painter, QSize size) {
  const double scale =
      std::max(1.0, std::min(size.width() / kComfortableWidth, size.height() / kComfortableHeight));
  painter.save();
  painter.fillRect(QRect(QPoint(0, 0), size), theme().background());
  painter.scale(scale, scale);
  const QSize inner(static_cast<int>(size.width() / scale),
                    static_cast<int>(size.height() / scale));
  paint_content(painter, QRect(QPoint(0, 0), inner));
  painter.restore();
}

void ChartView::paint_content(QPainter& painter, const QRect& area) { paint_plots(painter, area); }

void ChartView::paint_plots(QPainter& painter, const QRect& area) {
  int total = 0, before = 0;
  for (const int s : stretches_) total += s;
  const bool beside = is_side_by_side(area.size());
  const int length = beside ? area.width() : area.height();
  for (std::size_t i = 0; i < plots_.size(); ++i) {
    const int from = length * before / total;
    before += stretches_[i];
    const int to = length * before / total;
    const QRect part = beside ? QRect(area.left() + from, area.top(), to - from, area.height())
                              : QRect(area.left(), area.top() + from, area.width(), to - from);
    plots_[i]->paint_to(painter, part);
  }
}

std::string problem_of(const Results& results) {
  std::string why;
  for (const RunView& view : results.runs) {
    if (view.ok()) return {};
    if (why.empty() && view.result && view.result->problem) {
      why = view.run.name + ": " + view.result->problem->text;
    }
  }
  return why.empty() ? "nothing is computed yet" : why;
}

std::string legend_text(ColourRole role) {
  switch (role) {
    case ColourRole::kind_gemm:
      return "GEMM";
    case ColourRole::kind_attention:
      return "attention";
    case ColourRole::kind_norm:
      return "norm";
    case ColourRole::kind_pointwise:
      return "pointwise";
    case ColourRole::kind_reduction:
      return "reduction";
    case ColourRole::kind_block:
      return "block in one launch";
    case ColourRole::bound_tensor:
      return "tensor cores";
    case ColourRole::bound_hbm:
      return "HBM";
    case ColourRole::bound_l2:
      return "L2";
    case ColourRole::bound_smem:
      return "shared memory";
    case ColourRole::bound_launch:
      return "launch";
    case ColourRole::bound_sync:
      return "barriers";
    case ColourRole::tensor_input:
      return "input";
    case ColourRole::tensor_weight:
      return "weights";
    case ColourRole::tensor_table:
      return "tables";
    case ColourRole::tensor_cache:
      return "cache";
    case ColourRole::tensor_activation:
      return "activations";
    case ColourRole::tensor_output:
      return "output";
    case ColourRole::rest:
      return "written, other";
    case ColourRole::measured:
      return "not told apart";
    default:
      return {};
  }
}

}  // namespace fuseline::gui
