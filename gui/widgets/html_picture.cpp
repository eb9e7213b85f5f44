#include "gui/widgets/html_picture.h"

#include <QPainter>
#include <QTextDocument>
#include <algorithm>

namespace fuseline::gui {

void paint_html(QPainter& painter, QSize size, const QString& body, const Theme& theme,
                const QFont& font) {
  constexpr int kMargin = 14;
  painter.fillRect(QRect(QPoint(), size), theme.background());
  QTextDocument document;
  document.setDefaultFont(font);
  document.setDefaultStyleSheet(
      QString("body { color: %1 }").arg(theme.colour(ColourRole::text).name()));
  document.setHtml("<body>" + body + "</body>");
  document.setTextWidth(size.width() - 2 * kMargin);
  const double scale =
      std::clamp((size.height() - 2 * kMargin) / std::max(1.0, document.size().height()), 0.1, 1.0);
  document.setTextWidth((size.width() - 2 * kMargin) / scale);
  painter.save();
  painter.translate(kMargin, kMargin);
  painter.scale(scale, scale);
  document.drawContents(&painter);
  painter.restore();
}

}  // namespace fuseline::gui
