#include "gui/widgets/theme.h"

#include <QFontDatabase>
#include <QFontInfo>
#include <QLineF>
#include <QPainter>
#include <QPen>
#include <QVector>
#include <algorithm>
#include <array>
#include <cmath>

namespace fuseline::gui {

namespace {

struct Pair {
  QRgb light;
  QRgb dark;
};

// Hues after Okabe and Ito, with four more; darker on white, lighter on black.
constexpr std::array<Pair, 10> kRuns = {{
    {0xff0072b2, 0xff4aa8e0},  // blue
    {0xffd98200, 0xfff0ac3a},  // orange
    {0xff00876a, 0xff2cc29a},  // green
    {0xffb2558b, 0xffe08fbf},  // pink
    {0xff3f9fd8, 0xff86d0f7},  // sky
    {0xffc24e00, 0xfff08550},  // vermilion
    {0xff6a51a3, 0xffa995e0},  // violet
    {0xff7a6a1f, 0xffd3c35a},  // olive
    {0xff1f5a5e, 0xff7fc4c9},  // teal
    {0xff8a3b2e, 0xffd79a86},  // brown
}};

constexpr std::array<Pair, 3> kBetter = {
    {{0xff4f91bd, 0xff78add0}, {0xff1f76b0, 0xff5fb0e6}, {0xff005a94, 0xff6fc3ff}}};
constexpr std::array<Pair, 3> kWorse = {
    {{0xffb8763a, 0xffd0a173}, {0xffbf5f0a, 0xffeb9d54}, {0xffa84300, 0xffff9d57}}};

Pair pair_of(ColourRole role) {
  switch (role) {
    case ColourRole::text:
      return {0xff1d2329, 0xffe8ebee};
    case ColourRole::muted:
      return {0xff5c6670, 0xff9aa5af};
    case ColourRole::grid:
      return {0xffe4e7eb, 0xff343b43};
    case ColourRole::ceiling:
      return {0xff39424c, 0xffc3ccd4};
    case ColourRole::limit:
      return {0xff882255, 0xffe58ab5};
    case ColourRole::baseline:
      return {0xff66717c, 0xff9ca8b3};
    case ColourRole::run:
      return kRuns[0];
    case ColourRole::predicted:
      return {0xff0072b2, 0xff4aa8e0};
    case ColourRole::measured:
      return {0xff39424c, 0xffc3ccd4};
    case ColourRole::better:
      return kBetter[2];
    case ColourRole::worse:
      return kWorse[2];
    case ColourRole::neutral:
      return {0xff6c7680, 0xff98a3ad};
    case ColourRole::kind_gemm:
      return {0xff2f72ab, 0xff5b9fd6};
    case ColourRole::kind_attention:
      return {0xff7a56aa, 0xffab8ad8};
    case ColourRole::kind_norm:
      return {0xff1a8569, 0xff3fbf9d};
    case ColourRole::kind_pointwise:
      return {0xffdf9a1f, 0xffe8b04a};
    case ColourRole::kind_reduction:
      return {0xffb9501f, 0xffe38358};
    case ColourRole::kind_block:
      return {0xff5d7f8c, 0xff86a9b6};
    case ColourRole::bound_tensor:
      return {0xff2f7fbd, 0xff5aa5df};
    case ColourRole::bound_hbm:
      return {0xffcc5a1e, 0xffe98250};
    case ColourRole::bound_l2:
      return {0xffdf9f20, 0xffe9b64d};
    case ColourRole::bound_smem:
      return {0xff7f5fb0, 0xffa98bd8};
    case ColourRole::bound_launch:
      return {0xff8b959f, 0xff77828d};
    case ColourRole::bound_sync:
      return {0xffb5588c, 0xffdc8cba};
    case ColourRole::tensor_input:
      return {0xff1f9a7c, 0xff3fbf9d};
    case ColourRole::tensor_weight:
      return {0xff7a8794, 0xff8f9daa};
    case ColourRole::tensor_table:
      return {0xffa39a83, 0xffa9a18d};
    case ColourRole::tensor_cache:
      return {0xff8360b0, 0xffab8ad8};
    case ColourRole::tensor_activation:
      return {0xff3a86bd, 0xff5ea3d8};
    case ColourRole::tensor_output:
      return {0xffc65c2b, 0xffe38358};
    case ColourRole::on_chip:
      return {0xff00876a, 0xff2cc29a};
    case ColourRole::gap:
      return {0xffc9ced4, 0xff4a535c};
    case ColourRole::highlight:
      return {0xffc2185b, 0xffff7fae};
    case ColourRole::rest:
      return {0xffb9c0c7, 0xff59636d};
    case ColourRole::allowed:
      return {0xff00785e, 0xff2cc29a};
    case ColourRole::refused:
      return {0xffb3261e, 0xffff8f85};
    case ColourRole::heat:
      return {0xff00467c, 0xff8fd3ff};
  }
  return {0xff000000, 0xffffffff};
}

// The shades of one hue in turn: neighbours in a stack differ in lightness, never in meaning.
QColor shaded(const QColor& base, int shade, bool dark) {
  constexpr std::array<double, 4> kSteps = {0.0, 0.22, -0.16, 0.38};
  const double step = kSteps[static_cast<std::size_t>(shade % 4)] * (dark ? 0.7 : 1.0);
  const QColor to = step >= 0 ? QColor(Qt::white) : QColor(Qt::black);
  const double w = std::abs(step);
  const auto mix = [w](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * w)); };
  return {mix(base.red(), to.red()), mix(base.green(), to.green()), mix(base.blue(), to.blue())};
}

// Relative luminance as WCAG 2 has it.
double luminance(const QColor& c) {
  const auto linear = [](double v) {
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

template <std::size_t n>
Pair level(const std::array<Pair, n>& pairs, int shade) {
  return pairs[static_cast<std::size_t>(std::clamp(shade - 1, 0, static_cast<int>(n) - 1))];
}

QPalette palette_of(QRgb window, QRgb base, QRgb alternate, QRgb text, QRgb muted, QRgb button,
                    QRgb accent, QRgb on_accent) {
  QPalette p{QColor(button), QColor(window)};
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    p.setColor(role, QColor(text));
    p.setColor(QPalette::Disabled, role, QColor(muted));
  }
  p.setColor(QPalette::Window, QColor(window));
  p.setColor(QPalette::Base, QColor(base));
  p.setColor(QPalette::AlternateBase, QColor(alternate));
  p.setColor(QPalette::Button, QColor(button));
  p.setColor(QPalette::BrightText, QColor(on_accent));
  p.setColor(QPalette::ToolTipBase, QColor(alternate));
  p.setColor(QPalette::ToolTipText, QColor(text));
  p.setColor(QPalette::PlaceholderText, QColor(muted));
  p.setColor(QPalette::Highlight, QColor(accent));
  p.setColor(QPalette::HighlightedText, QColor(on_accent));
  p.setColor(QPalette::Link, QColor(accent));
  p.setColor(QPalette::LinkVisited, QColor(accent));
  return p;
}

}  // namespace

QColor mixed(const QColor& a, const QColor& b, double part_of_b) {
  const auto mix = [part_of_b](int x, int y) {
    return static_cast<int>(std::lround(x + (y - x) * part_of_b));
  };
  return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

Theme::Theme(const QPalette& palette)
    : palette_(palette), dark_(luminance(palette.color(QPalette::Base)) < 0.2) {}

QColor Theme::surface() const {
  return mixed(background(), dark_ ? QColor(Qt::white) : QColor(0x40, 0x5a, 0x78),
               dark_ ? 0.06 : 0.06);
}

QColor Theme::outline() const {
  return mixed(background(), dark_ ? QColor(Qt::white) : QColor(0x20, 0x30, 0x40),
               dark_ ? 0.24 : 0.26);
}

QColor Theme::colour(Colour c) const {
  const auto pick = [this](Pair p) { return QColor::fromRgb(dark_ ? p.dark : p.light); };
  switch (c.role) {
    case ColourRole::run:
      return pick(kRuns[static_cast<std::size_t>(std::max(0, c.shade)) % kRuns.size()]);
    case ColourRole::better:
      return pick(level(kBetter, c.shade == 0 ? 3 : c.shade));
    case ColourRole::worse:
      return pick(level(kWorse, c.shade == 0 ? 3 : c.shade));
    case ColourRole::heat: {  // from a quiet surface on, each step as much farther from it
      const double part = std::clamp(c.shade, 0, kMostHeat) / static_cast<double>(kMostHeat);
      return mixed(surface(), pick(pair_of(c.role)), 0.1 + 0.9 * part);
    }
    default:
      return shaded(pick(pair_of(c.role)), std::max(0, c.shade), dark_);
  }
}

QColor Theme::faded(const QColor& c) const { return mixed(c, background(), 0.68); }

// At a luminance of 0.179 both have the same contrast, 4.58 to 1.
QColor ink_on(const QColor& fill) {
  return luminance(fill) > 0.179 ? QColor(Qt::black) : QColor(Qt::white);
}

QPalette light_palette() {
  return palette_of(0xfff3f5f7, 0xffffffff, 0xfff7f9fa, 0xff1d2329, 0xff8a949e, 0xffeceff2,
                    0xff1f6fb2, 0xffffffff);
}

QPalette dark_palette() {
  return palette_of(0xff1c2127, 0xff15191e, 0xff1f252b, 0xffe4e8eb, 0xff7c8791, 0xff2a3138,
                    0xff3f8fd0, 0xffffffff);
}

QFont small_font(const QFont& font) {
  QFont f = font;
  f.setPointSizeF(std::max(7.0, font.pointSizeF() * 0.88));
  return f;
}

QFont heading_font(const QFont& font) {
  QFont f = font;
  f.setPointSizeF(font.pointSizeF() * 1.1);
  f.setWeight(QFont::DemiBold);
  return f;
}

QFont code_font(const QFont& font) {
  QFont f = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  if (!QFontInfo(f).fixedPitch()) f = QFont("DejaVu Sans Mono");  // a platform without a choice
  f.setStyleHint(QFont::Monospace);
  f.setPointSizeF(font.pointSizeF() * 0.95);
  return f;
}

void hatch(QPainter& painter, const QRectF& area, const QColor& line, double spacing) {
  if (area.isEmpty()) return;
  // Lines x + y = c, each cut where it leaves the rectangle.
  QVector<QLineF> lines;
  const double first = std::ceil((area.left() + area.top()) / spacing) * spacing;
  for (double c = first; c < area.right() + area.bottom(); c += spacing) {
    const double left = std::max(area.left(), c - area.bottom());
    const double right = std::min(area.right(), c - area.top());
    if (left < right) lines.append(QLineF(left, c - left, right, c - right));
  }
  painter.save();
  painter.setPen(QPen(line, 1));
  painter.drawLines(lines);
  painter.restore();
}

}  // namespace fuseline::gui
