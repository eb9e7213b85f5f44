// One drawing as SVG text. Text and lines take the colour of the page around them, so that the same
// drawing suits light and dark pages.
#pragma once

#include <string>
#include <vector>

namespace fuseline {

enum class Anchor { start, middle, end };

// A colour of the palette, by its place; it repeats after the last one. All stand out from white
// and from black, and from each other for most colour-blind eyes (Paul Tol's bright scheme).
std::string palette_colour(std::size_t place);

class Svg {
 public:
  // `title` and `description` are what a screen reader says.
  Svg(double width, double height, std::string title, std::string description);

  // `tip` is shown where the pointer rests; empty: none.
  void rect(double x, double y, double width, double height, const std::string& colour,
            const std::string& tip = {}, double opacity = 1);
  void outline(double x, double y, double width, double height, double corner,
               const std::string& tip = {});
  void line(double x1, double y1, double x2, double y2, double width = 1, double opacity = 1,
            bool dashed = false);
  void path(const std::string& d, const std::string& colour, double width, double opacity = 1,
            bool dashed = false, const std::string& tip = {});
  void circle(double x, double y, double radius, const std::string& colour,
              const std::string& tip = {});
  void diamond(double x, double y, double radius, const std::string& tip = {});
  void text(double x, double y, const std::string& words, Anchor anchor = Anchor::start,
            double size = 12, double opacity = 1, bool bold = false);
  // In the middle of an area of that colour ("#4477AA"): black or white, whichever is read better.
  void text_on(const std::string& colour, double x, double y, const std::string& words,
               double size = 12);

  // For a page or a notebook.
  [[nodiscard]] std::string element() const;
  // A file of its own, with a background that follows the reader's light or dark setting.
  [[nodiscard]] std::string file() const;

 private:
  [[nodiscard]] std::string head(const std::string& attributes) const;

  double width_, height_;
  std::string title_, description_, body_;
};

// <, >, &, and quotes as HTML and XML write them; other control characters than line breaks become
// spaces.
std::string escaped(const std::string& text);

// Round numbers from 0 to at least `most`: {0, 200, 400, 600}. At most `count` + 1 steps.
std::vector<double> axis_ticks(double most, int count = 6);

// A number beside an axis or in a tip: three digits below 10, whole from there on.
std::string chart_number(double value);

// About how wide the text is drawn in a sans-serif font of that size, in pixels.
double text_width(const std::string& text, double size = 12);
// The text, cut with "…" where it would be wider.
std::string shortened_to(const std::string& text, double width, double size = 12);

}  // namespace fuseline
