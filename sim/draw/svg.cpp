#include "sim/draw/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace fuseline {

namespace {

std::string tip_text(const std::string& tip) {
  return tip.empty() ? "" : "<title>" + escaped(tip) + "</title>";
}

// Two digits behind the point are more than a screen shows.
std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

const char* name_of(Anchor anchor) {
  return anchor == Anchor::start ? "start" : anchor == Anchor::middle ? "middle" : "end";
}

// Relative luminance of "#rrggbb", from 0 to 1 (WCAG 2.2).
double luminance(const std::string& colour) {
  const auto part = [&](std::size_t at) {
    const double c = std::stoi(colour.substr(at, 2), nullptr, 16) / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

// Black and white have the same contrast to this ground: sqrt(1.05 * 0.05) - 0.05.
constexpr double kEquallyReadable = 0.179;

}  // namespace

std::string palette_colour(std::size_t place) {
  constexpr std::array<const char*, 8> kColours = {"#4477aa", "#ee6677", "#228833", "#ccbb44",
                                                   "#66ccee", "#aa3377", "#999999", "#bb7733"};
  return kColours[place % kColours.size()];
}

Svg::Svg(double width, double height, std::string title, std::string description)
    : width_(width),
      height_(height),
      title_(std::move(title)),
      description_(std::move(description)) {}

void Svg::rect(double x, double y, double width, double height, const std::string& colour,
               const std::string& tip, double opacity) {
  body_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}>{}</rect>\n", px(x), px(y),
      px(std::max(width, 0.0)), px(height), colour,
      opacity < 1 ? fmt::format(" fill-opacity=\"{}\"", px(opacity)) : "", tip_text(tip));
}

void Svg::outline(double x, double y, double width, double height, double corner,
                  const std::string& tip) {
  body_ += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"currentColor\" "
      "fill-opacity=\"0.06\" stroke=\"currentColor\" stroke-opacity=\"0.45\">{}</rect>\n",
      px(x), px(y), px(width), px(height), px(corner), tip_text(tip));
}

void Svg::line(double x1, double y1, double x2, double y2, double width, double opacity,
               bool dashed) {
  body_ += fmt::format(
      "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"currentColor\" stroke-width=\"{}\" "
      "stroke-opacity=\"{}\"{}/>\n",
      px(x1), px(y1), px(x2), px(y2), px(width), px(opacity),
      dashed ? " stroke-dasharray=\"4 3\"" : "");
}

void Svg::path(const std::string& d, const std::string& colour, double width, double opacity,
               bool dashed, const std::string& tip) {
  body_ += fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-opacity=\"{}\"{}>{}"
      "</path>\n",
      d, colour, px(width), px(opacity), dashed ? " stroke-dasharray=\"4 3\"" : "", tip_text(tip));
}

void Svg::circle(double x, double y, double radius, const std::string& colour,
                 const std::string& tip) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\">{}</circle>\n", px(x),
                       px(y), px(radius), colour, tip_text(tip));
}

void Svg::diamond(double x, double y, double radius, const std::string& tip) {
  body_ += fmt::format("<path d=\"M{} {}L{} {}L{} {}L{} {}Z\" fill=\"currentColor\">{}</path>\n",
                       px(x), px(y - radius), px(x + radius), px(y), px(x), px(y + radius),
                       px(x - radius), px(y), tip_text(tip));
}

void Svg::text(double x, double y, const std::string& words, Anchor anchor, double size,
               double opacity, bool bold) {
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" font-size=\"{}\" fill=\"currentColor\"{}{}>{}"
      "</text>\n",
      px(x), px(y), name_of(anchor), px(size),
      opacity < 1 ? fmt::format(" fill-opacity=\"{}\"", px(opacity)) : "",
      bold ? " font-weight=\"600\"" : "", escaped(words));
}

void Svg::text_on(const std::string& colour, double x, double y, const std::string& words,
                  double size) {
  body_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{}\" fill=\"{}\">{}</text>\n",
      px(x), px(y), px(size), luminance(colour) > kEquallyReadable ? "#000" : "#fff",
      escaped(words));
}

std::string Svg::head(const std::string& attributes) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\"{2}>\n"
      "<title>{3}</title>\n<desc>{4}</desc>\n",
      px(width_), px(height_), attributes, escaped(title_), escaped(description_));
}

std::string Svg::element() const {
  return head(" style=\"max-width:100%;height:auto\"") + body_ + "</svg>\n";
}

std::string Svg::file() const {
  return head("") +
         "<style>svg{color:#1b1f24;background:#fff}"
         "@media(prefers-color-scheme:dark){svg{color:#e6e9ec;background:#15181c}}</style>\n" +
         body_ + "</svg>\n";
}

std::string escaped(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < ' ' && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

std::vector<double> axis_ticks(double most, int count) {
  if (!(most > 0) || !std::isfinite(most)) return {0, 1};
  const double rough = most / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const int steps = static_cast<int>(std::ceil(most / step - 1e-9));
  for (int i = 0; i <= steps; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string chart_number(double value) {
  if (value == 0) return "0";
  return std::abs(value) < 10 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

double text_width(const std::string& text, double size) {
  double letters = 0;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!continues) letters += 1;
  }
  return letters * size * 0.6;
}

std::string shortened_to(const std::string& text, double width, double size) {
  if (text_width(text, size) <= width) return text;
  std::string cut = text;
  while (!cut.empty() && text_width(cut + "…", size) > width) {
    const bool continues = (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U;
    cut.pop_back();
    // The bytes of one letter go together.
    if (continues)
      while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0U) == 0x80U)
        cut.pop_back();
    if (continues && !cut.empty()) cut.pop_back();
  }
  return cut.empty() ? cut : cut + "…";
}

}  // namespace fuseline
