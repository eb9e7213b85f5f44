// What is drawn is what the models say: no number is lost or made up between them and the scenes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/widgets/charts/label_layout.h"
#include "gui/widgets/charts/roofline_view.h"
#include "gui/widgets/charts/sweep_view.h"
#include "gui/widgets/charts/ticker.h"
#include "gui/widgets/charts/timeline_view.h"
#include "gui/widgets/charts/traffic_view.h"
#include "gui/widgets/charts/validation_view.h"
#include "gui/widgets/charts/waterfall_view.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

std::vector<Mark> bars_of(const Scene& scene) {
  std::vector<Mark> bars;
  std::ranges::copy_if(scene.marks, std::back_inserter(bars),
                       [](const Mark& m) { return m.shape == Shape::bar; });
  return bars;
}

TEST(ChartScenes, BarsOfTrafficAreThePartsOfTheModelByteForByte) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  for (const StackBy by : {StackBy::kernel, StackBy::tensor}) {
    const TrafficChart chart = traffic_chart(results, by);
    const Scene scene = traffic_scene(chart);
    const std::vector<Mark> bars = bars_of(scene);
    std::size_t next = 0;
    for (const TrafficBar& bar : chart.bars) {
      for (const BarPart& part : bar.parts) {
        ASSERT_LT(next, bars.size());
        EXPECT_EQ(bars[next].to.x - bars[next].from.x, part.bytes.as_double());
        EXPECT_EQ(bars[next].from.x, part.from.as_double());
        EXPECT_TRUE(bars[next].thing == part.thing);
        EXPECT_EQ(bars[next].tooltip, part.tooltip);
        ++next;
      }
    }
    EXPECT_EQ(next, bars.size());
    EXPECT_EQ(scene.rows.size(), chart.bars.size());
    EXPECT_LE(scene.x.range.high, chart.axis_high);
    for (const Mark& bar : bars) EXPECT_LE(bar.to.x, scene.x.range.high);
  }
}

TEST(ChartScenes, TheLimitIsALineAtItsBytes) {
  const TrafficChart chart =
      traffic_chart(test::results_of(test::small_document()), StackBy::kernel);
  const Scene scene = traffic_scene(chart);
  const auto line = std::ranges::find(scene.marks, Shape::line, &Mark::shape);
  ASSERT_NE(line, scene.marks.end());
  EXPECT_EQ(line->from.x, chart.limit.as_double());
  EXPECT_EQ(line->to.x, line->from.x);
  EXPECT_EQ(line->label, chart.limit_label);
}

TEST(ChartScenes, WaterfallStepsHangTogether) {
  const Results results = test::results_of(test::small_document({"coda"}));
  const RunView& coda = results.runs.front();
  const Waterfall chart = waterfall(coda);
  const std::vector<Mark> bars = bars_of(waterfall_scene(chart, coda));
  ASSERT_EQ(bars.size(), chart.steps.size());
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const WaterfallStep& step = chart.steps[i];
    EXPECT_EQ(bars[i].from.x, std::min(step.before, step.after).as_double());
    EXPECT_EQ(bars[i].to.x, std::max(step.before, step.after).as_double());
    EXPECT_EQ(bars[i].colour, step.colour);
  }
}

TEST(ChartScenes, RooflinePointsLieWhereTheModelPutsThemAndSmallOnesOverLargeOnes) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const RooflineChart chart = roofline_chart(results, MemoryLevel::hbm);
  const Scene scene = roofline_scene(chart, results);
  std::size_t points = 0;
  double last = 2;
  for (const Mark& mark : scene.marks) {
    if (mark.shape == Shape::point) {
      EXPECT_LE(mark.size, last);
      last = mark.size;
    }
    if (mark.shape != Shape::point && mark.shape != Shape::diamond) continue;
    ++points;
    EXPECT_TRUE(std::ranges::any_of(chart.points, [&](const RooflinePoint& p) {
      return p.at == mark.from && p.thing == mark.thing && p.tooltip == mark.tooltip;
    })) << mark.label;
  }
  EXPECT_EQ(points, chart.points.size());
  EXPECT_EQ(scene.x.range, chart.x);
  EXPECT_EQ(scene.y.range, chart.y);
  const Scene blocks = roofline_scene(chart, results, false);
  EXPECT_EQ(std::ranges::count(blocks.marks, Shape::point, &Mark::shape), 0);
}

TEST(ChartScenes, TimelineBarsAndGapsAddUpToEachKernelsTime) {
  const Results results = test::results_of(test::small_document({"eager"}));
  const TimelineChart chart = timeline_chart(results, Align::start);
  const Scene scene = timeline_scene(chart, {});
  const std::vector<Mark> bars = bars_of(scene);
  for (const TimelineBar& bar : chart.rows.front().bars) {
    double length = 0, gaps = 0;
    for (const Mark& mark : bars) {
      if (!(mark.thing == bar.thing)) continue;
      length += mark.to.x - mark.from.x;
      if (mark.colour.role == ColourRole::gap) gaps += mark.to.x - mark.from.x;
    }
    EXPECT_NEAR(length, to_us(bar.length), 1e-9) << bar.label;
    EXPECT_NEAR(gaps, to_us(bar.gap), 1e-9) << bar.label;
    EXPECT_GT(gaps, 0);
  }
}

TEST(ChartScenes, ATensorThatStaysOnChipIsSaidToAndNotDrawn) {
  ResidencyChart a{.run = RunId{0}, .tensor = "gu", .bytes = Bytes(100), .steps = {}, .note = {}};
  a.steps = {{.begin = {},
              .end = microseconds(2),
              .resident = Bytes(50),
              .fraction = 0.5,
              .alive = true,
              .tooltip = "half"}};
  const ResidencyChart b{
      .run = RunId{1}, .tensor = "gu", .steps = {}, .note = "gu never leaves the chip"};
  const Scene scene = residency_scene({a, b}, {"eager", "coda"}, {{}, {}}, {0, 10});
  const auto curve = std::ranges::find(scene.marks, Shape::curve, &Mark::shape);
  ASSERT_NE(curve, scene.marks.end());
  EXPECT_EQ(curve->path, (std::vector<Point>{{0, 50}, {2, 50}}));
  EXPECT_THAT(scene.footnote, HasSubstr("coda: gu never leaves the chip"));
  // One reason of several runs is said once.
  const Scene both = residency_scene({a, b, b}, {"eager", "coda", "xla"}, {{}, {}, {}}, {0, 10});
  EXPECT_EQ(both.footnote, "coda, xla: gu never leaves the chip");
  const Scene none = residency_scene({b}, {"coda"}, {{}}, {0, 10});
  EXPECT_THAT(none.problem, HasSubstr("never leaves"));
}

TEST(ChartScenes, CrossoversAreMarkedInTimeAlone) {
  SweepChart chart;
  chart.x_label = "tokens";
  chart.x = {1, 4};
  chart.time_us = {1, 100};
  chart.hbm_bytes = {1, 100};
  for (const auto& [name, a, b] : {std::tuple{"one", 10.0, 40.0}, std::tuple{"two", 20.0, 20.0}}) {
    SweepCurve curve{name, {}, {}};
    curve.points = {
        {.value = 1, .time = microseconds(a), .hbm = Bytes(10), .problem = {}, .tooltip = {}},
        {.value = 4, .time = microseconds(b), .hbm = Bytes(20), .problem = {}, .tooltip = {}}};
    chart.curves.push_back(curve);
  }
  chart.crossovers = crossovers(chart.curves, "T");
  ASSERT_EQ(chart.crossovers.size(), 1U);
  const auto diamonds = [](const Scene& scene) {
    return std::ranges::count(scene.marks, Shape::diamond, &Mark::shape);
  };
  const Scene time = sweep_scene(chart, SweepQuantity::time, {});
  EXPECT_EQ(diamonds(time), 1);
  EXPECT_THAT(time.footnote, HasSubstr("two is faster than one"));
  EXPECT_EQ(diamonds(sweep_scene(chart, SweepQuantity::bytes, {})), 0);
}

TEST(ChartScenes, PointsBeyondTheAxesLieOnTheirEdgeWithTheirOwnNumbers) {
  ValidationChart chart;
  chart.predictors = {"roofline", "hierarchy"};
  Scatter s;
  s.axis = {100, 1000};
  ScatterPoint near;
  near.at = {200, 210};
  near.tooltip = "210";
  near.predictor = 1;
  ScatterPoint beyond;
  beyond.at = {200, 20};
  beyond.tooltip = "20";
  s.points = {near, beyond};
  chart.scatters.push_back(s);
  const Scene scene = validation_scene(chart, 0);
  const auto far = std::ranges::find(scene.marks, "20", &Mark::tooltip);
  ASSERT_NE(far, scene.marks.end());
  EXPECT_EQ(far->shape, Shape::diamond);
  EXPECT_EQ(far->from, (Point{200, 100}));
  EXPECT_EQ(scene.marks.back().tooltip, "210") << "the hierarchy is on top";
}

TEST(LabelLayout, LabelsNeverOverlapAndStayInside) {
  const QRectF area(0, 0, 300, 200);
  LabelLayout layout(area);
  QVector<QRectF> placed;
  int left_out = 0;
  for (int i = 0; i < 40; ++i) {
    const QPointF at(120 + (i * 7) % 50, 80 + (i * 11) % 40);
    const auto place = layout.place({60, 14}, at, 4);
    if (!place) {
      ++left_out;
      continue;
    }
    EXPECT_TRUE(area.contains(*place));
    for (const QRectF& other : placed) EXPECT_FALSE(other.intersects(*place));
    placed.append(*place);
  }
  EXPECT_GE(placed.size(), 6);
  EXPECT_GT(left_out, 0) << "there is no room for all";
}

TEST(ChartTicks, AreDecadesOnLogAxesAndShownInTheUnitOnLinearOnes) {
  ChartTicker log({.label = {}, .range = {0.01, 1e5}, .log = true});
  log.set_room(900, 75);
  QVector<double> ticks, sub;
  QVector<QString> labels;
  log.generate({0.01, 1e5}, QLocale::c(), 'g', 4, ticks, &sub, &labels);
  EXPECT_EQ(labels.front(), QStringLiteral("0.01"));
  EXPECT_EQ(labels.back(), QStringLiteral("100\u00a0k"));
  EXPECT_EQ(ticks.size(), 8);

  ChartTicker bytes({.label = {}, .range = {0, 2e9}, .unit = 1e6});
  bytes.generate({0, 2e9}, QLocale::c(), 'g', 4, ticks, &sub, &labels);
  EXPECT_EQ(labels.back(), QStringLiteral("2000"));
  EXPECT_DOUBLE_EQ(ticks.back(), 2e9);
}

TEST(ChartTicks, StepByOneTwoOrFiveOfADecade) {
  for (const double high : {1.0, 2.7, 3.0, 7.5, 12.0, 2750.0, 9999.0}) {
    for (const int room : {200, 500, 1100}) {
      ChartTicker ticker({.label = {}, .range = {0, high}});
      ticker.set_room(room, 75);
      QVector<double> ticks;
      ticker.generate({0, high}, QLocale::c(), 'g', 4, ticks, nullptr, nullptr);
      ASSERT_GE(ticks.size(), 2) << high << " " << room;
      const double step = ticks[1] - ticks[0];
      const double mantissa = step / std::pow(10.0, std::floor(std::log10(step) + 1e-9));
      EXPECT_TRUE(std::abs(mantissa - 1) < 1e-6 || std::abs(mantissa - 2) < 1e-6 ||
                  std::abs(mantissa - 5) < 1e-6)
          << step;
    }
  }
}

TEST(ChartScenes, AxesEndAtTheFirstRoundNumberAboveTheData) {
  EXPECT_EQ(snug_range(2.71e9, 5e9).high, 3e9);
  EXPECT_EQ(snug_range(1.91e9, 2e9).high, 2e9);
  EXPECT_GT(snug_range(3e9, 5e9).high, 3e9) << "a bar does not touch the edge";
}

}  // namespace
}  // namespace fuseline::gui
