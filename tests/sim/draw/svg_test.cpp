// Drawings: what is written is safe to put into a page, and lengths follow the numbers.
#include "sim/draw/svg.h"

#include <gtest/gtest.h>

#include "sim/draw/bar_chart.h"
#include "sim/draw/line_chart.h"

namespace fuseline {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

// The values of that attribute of all elements that begin so, in order.
std::vector<double> values_of(const std::string& text, const std::string& element,
                              const std::string& attribute) {
  std::vector<double> out;
  const std::string key = attribute + "=\"";
  for (std::size_t at = 0; (at = text.find(element, at)) != std::string::npos;) {
    at = text.find(key, at) + key.size();
    out.push_back(std::stod(text.substr(at)));
  }
  return out;
}

TEST(SvgText, EscapesWhatAPageObeys) {
  EXPECT_EQ(escaped("a<b>&\"'\x01"), "a&lt;b&gt;&amp;&quot;&#39; ");
  Svg svg(10, 10, "<title>", "\"desc\"");
  svg.text(0, 0, "<script>");
  EXPECT_EQ(svg.element().find("<script>"), std::string::npos);
  EXPECT_NE(svg.element().find("&lt;title&gt;"), std::string::npos);
}

TEST(SvgText, OnlyAFileOfItsOwnHasABackground) {
  const Svg svg(10, 10, "t", "d");
  EXPECT_EQ(svg.element().find("background"), std::string::npos);
  EXPECT_NE(svg.file().find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(SvgText, CutsBetweenLettersNotBytes) {
  const std::string cut = shortened_to("µµµµµµµµµµ", text_width("µµµµµ"));
  EXPECT_EQ(cut, "µµµµ…");
  EXPECT_EQ(shortened_to("short", 1000), "short");
}

TEST(AxisTicks, AreRoundAndReachTheLargestValue) {
  EXPECT_EQ(axis_ticks(53), (std::vector<double>{0, 10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(axis_ticks(0.9), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0}));
  for (const double most : {1e-9, 0.7, 1.0, 99.0, 100.0, 12'345.6, 3e12}) {
    const std::vector<double> ticks = axis_ticks(most);
    EXPECT_GE(ticks.back(), most * (1 - 1e-9));
    EXPECT_LE(ticks.size(), 7U);
  }
  EXPECT_EQ(axis_ticks(0).size(), 2U);
}

TEST(BarCharts, BarsAreAsLongAsTheirSums) {
  const Svg svg = draw(BarChart{.title = "t",
                                .unit = "MB",
                                .parts = {"a"},
                                .bars = {{"one", {100}}, {"three", {300}, 250.0, 390.0, 310.0}}});
  const std::vector<double> widths = values_of(svg.element(), "<rect", "width");
  ASSERT_EQ(widths.size(), 2U);
  EXPECT_NEAR(widths[1] / widths[0], 3, 0.001);
  EXPECT_NE(svg.element().find("90 % band 250 to 390"), std::string::npos);
  EXPECT_NE(svg.element().find("measured 310"), std::string::npos);
}

TEST(BarCharts, PartsStandEndToEnd) {
  const std::string text =
      draw(BarChart{.title = "t", .unit = "MB", .parts = {"a", "b"}, .bars = {{"x", {10, 20}}}})
          .element();
  const std::vector<double> x = values_of(text, "<rect", "x"),
                            width = values_of(text, "<rect", "width");
  ASSERT_EQ(x.size(), 4U);  // two signs of the legend first
  EXPECT_NEAR(x[2] + width[2], x[3], 0.02);
}

// A legend once stood on the end of a long title.
TEST(BarCharts, ALongTitleHasItsLegendBelow) {
  BarChart chart{
      .title = "short", .unit = "MB", .parts = {"read", "written"}, .bars = {{"x", {1, 2}}}};
  const auto legend_y = [&] { return values_of(draw(chart).element(), "<text", "y").at(1); };
  const double beside = legend_y();
  chart.title = std::string(200, 'a');
  EXPECT_GT(legend_y(), beside + 14);  // the height of the title's letters
}

TEST(Svgs, WordsOnAColourAreBlackOrWhite) {
  Svg svg(10, 10, "t", "");
  svg.text_on("#000000", 1, 1, "on black");
  svg.text_on("#ffffff", 1, 1, "on white");
  const std::string text = svg.element();
  EXPECT_NE(text.find("fill=\"#fff\">on black"), std::string::npos);
  EXPECT_NE(text.find("fill=\"#000\">on white"), std::string::npos);
}

TEST(LineCharts, PointsKeepTheirOrderOnBothAxes) {
  const std::string text = draw(LineChart{.title = "t",
                                          .x_name = "seq",
                                          .y_name = "µs",
                                          .lines = {{"a", {{128, 10}, {1024, 40}, {16384, 900}}}}})
                               .element();
  const std::vector<double> x = values_of(text, "<circle", "cx"),
                            y = values_of(text, "<circle", "cy");
  ASSERT_EQ(x.size(), 3U);
  EXPECT_LT(x[0], x[1]);
  EXPECT_LT(x[1], x[2]);
  EXPECT_GT(y[0], y[1]);
  EXPECT_GT(y[1], y[2]);
  // Logarithmic: equal ratios are equal lengths.
  EXPECT_NEAR((x[1] - x[0]) / 3, (x[2] - x[1]) / 4, 0.1);
}

TEST(LineCharts, ALineOfOnePointIsDrawn) {
  const std::string text =
      draw(LineChart{.title = "t", .x_name = "x", .y_name = "y", .lines = {{"a", {{5, 5}}}}})
          .element();
  EXPECT_EQ(count_of(text, "<circle"), 1U);
  EXPECT_EQ(text.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace fuseline
