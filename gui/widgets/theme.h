// Colours and pens for the roles that the view models name, from the palette: light or dark. Hues
// are told apart by people with any colour vision, and each also differs in lightness.
#pragma once

#include <QBrush>
#include <QColor>
#include <QFont>
#include <QPalette>
#include <QRectF>

#include "gui/model/roles.h"

class QPainter;

namespace fuseline::gui {

class Theme {
 public:
  explicit Theme(const QPalette& palette);

  [[nodiscard]] bool is_dark() const { return dark_; }
  [[nodiscard]] QColor background() const { return palette_.color(QPalette::Base); }
  // A quiet surface on the background: boxes, frames, strips.
  [[nodiscard]] QColor surface() const;
  [[nodiscard]] QColor outline() const;  // of surfaces and bars
  [[nodiscard]] QColor colour(Colour c) const;
  [[nodiscard]] QColor colour(ColourRole role) const { return colour(Colour{role, 0}); }
  // The colour for what is not highlighted while something else is.
  [[nodiscard]] QColor faded(const QColor& c) const;

 private:
  QPalette palette_;
  bool dark_ = false;
};

// Black or white, whichever reads better on `fill`: a contrast of at least 4.5 to 1 (WCAG 2, AA).
QColor ink_on(const QColor& fill);

// The window's own palettes; a desktop's palette works as well.
QPalette light_palette();
QPalette dark_palette();

QFont small_font(const QFont& font);    // labels of axes and bars
QFont heading_font(const QFont& font);  // titles of charts
QFont code_font(const QFont& font);     // programs, exact numbers

// Diagonal lines over a bar that was measured; drawn as lines, so that they survive in SVG and PDF.
void hatch(QPainter& painter, const QRectF& area, const QColor& line, double spacing = 6);

// A colour between two of them: 0 is a, 1 is b.
QColor mixed(const QColor& a, const QColor& b, double part_of_b);

}  // namespace fuseline::gui
