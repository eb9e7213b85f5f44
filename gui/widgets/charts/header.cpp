#include "gui/widgets/charts/header.h"

#include <QFontMetricsF>
#include <cmath>

namespace fuseline::gui {

namespace {

constexpr double kSwatch = 18;   // width of a sample, px
constexpr double kBeside = 5;    // from the sample to its text
constexpr double kBetween = 14;  // from one entry to the next

void set_height(QCPLayoutElement& element, double height) {
  const int h = static_cast<int>(std::ceil(height));
  element.setMinimumSize(0, h);
  element.setMaximumSize(QWIDGETSIZE_MAX, h);
}

}  // namespace

void Header::arrange(const Scene& scene, const Theme& theme, const QFont& font, int width,
                     bool with_legend) {
  theme_ = theme;
  title_font_ = in_pixels(heading_font(font));
  legend_font_ = in_pixels(small_font(font));
  title_ = QFontMetricsF(title_font_)
               .elidedText(QString::fromStdString(scene.title), Qt::ElideRight, width);
  legend_.clear();
  double y = title_.isEmpty() ? 0 : text_height(title_font_) + 4;
  const double line = text_height(legend_font_) + 4;
  double x = 0;
  for (const LegendEntry& entry : scene.legend) {
    if (!scene.problem.empty() || !with_legend) break;
    const double w =
        kSwatch + kBeside + text_width(legend_font_, QString::fromStdString(entry.text));
    if (x > 0 && x + w > width) {
      x = 0;
      y += line;
    }
    legend_.append({entry, {x, y}});
    x += w + kBetween;
  }
  if (!legend_.isEmpty()) y += line;
  set_height(*this, y);
}

void Header::draw(QCPPainter* painter) {
  if (!theme_) return;
  QPainter& p = *painter;
  const QRectF area = rect();
  p.setFont(title_font_);
  p.setPen(theme_->colour(ColourRole::text));
  p.drawText(area, Qt::AlignLeft | Qt::AlignTop, title_);
  p.setFont(legend_font_);
  const double h = text_height(legend_font_);
  for (const Placed& placed : legend_) {
    const QPointF at = area.topLeft() + placed.at;
    draw_swatch(p, QRectF(at.x(), at.y() + (h - 10) / 2, kSwatch, 10), placed.entry, *theme_);
    p.setPen(theme_->colour(ColourRole::text));
    p.drawText(QPointF(at.x() + kSwatch + kBeside, at.y() + QFontMetricsF(legend_font_).ascent()),
               QString::fromStdString(placed.entry.text));
  }
}

void Footer::arrange(const Scene& scene, const Theme& theme, const QFont& font, int width) {
  text_ = scene.problem.empty() ? QString::fromStdString(scene.footnote) : QString();
  font_ = in_pixels(small_font(font));
  colour_ = theme.colour(ColourRole::muted);
  if (text_.isEmpty()) {
    set_height(*this, 0);
    return;
  }
  const QRectF box = QFontMetricsF(font_).boundingRect(
      QRectF(0, 0, width, 1000), int(Qt::TextWordWrap) | int(Qt::AlignLeft), text_);
  set_height(*this, box.height() + 4);
}

void Footer::draw(QCPPainter* painter) {
  if (text_.isEmpty()) return;
  QPainter& p = *painter;
  p.setFont(font_);
  p.setPen(colour_);
  p.drawText(QRectF(rect()), int(Qt::TextWordWrap) | int(Qt::AlignLeft) | int(Qt::AlignBottom),
             text_);
}

}  // namespace fuseline::gui
