#include "gui/model/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "model/config/model_files.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Times in µs at T = 1, 2, 4, 8, ...
SweepCurve curve(const std::string& label, const std::vector<double>& times) {
  SweepCurve c;
  c.label = label;
  std::int64_t value = 1;
  for (const double t : times) {
    SweepPoint p;
    p.value = value;
    p.time = microseconds(t);
    c.points.push_back(p);
    value *= 2;
  }
  return c;
}

TEST(Crossovers, LieWhereTheCurvesMeet) {
  // t = 8 and t = 2 v on log axes meet at v = 4, t = 8; here between v = 2 and v = 8.
  SweepCurve flat = curve("flat", {8, 8, 8}), steep = curve("steep", {2, 4, 16});
  for (SweepCurve* c : {&flat, &steep}) c->points[2].value = 8;
  const std::vector<Crossover> found = crossovers({flat, steep}, "T");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].at, 4, 1e-9);
  EXPECT_NEAR(to_us(found[0].time), 8, 1e-9);
  EXPECT_EQ(found[0].before, 1U);
  EXPECT_EQ(found[0].after, 0U);
  EXPECT_EQ(found[0].text, "flat is faster than steep from T ≈ 4");
}

TEST(Crossovers, TouchingIsNoCrossingAndEqualValuesInBetweenDoNotHideOne) {
  EXPECT_THAT(crossovers({curve("a", {1, 2, 3}), curve("b", {2, 2, 4})}, "T"), IsEmpty());
  EXPECT_THAT(crossovers({curve("a", {1, 1}), curve("b", {1, 1})}, "T"), IsEmpty());
  const std::vector<Crossover> found =
      crossovers({curve("a", {1, 2, 4}), curve("b", {2, 2, 2})}, "T");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].at, 2, 1e-9);
}

TEST(Crossovers, AreNotDrawnAcrossAGap) {
  SweepCurve a = curve("a", {1, 1, 1}), b = curve("b", {2, 2, 0.5});
  b.points[1].problem = "too large";
  EXPECT_THAT(crossovers({a, b}, "T"), IsEmpty());
}

// Between random curves: each crossing lies between two neighbouring values, the named curve is
// faster on each side, and their number has the parity of the order's change.
TEST(CrossoversProperty, SeparateTheValuesByWhoIsFaster) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(1, 100);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> ta(6), tb(6);
    for (double& t : ta) t = time(random);
    for (double& t : tb) t = time(random);
    const std::vector<SweepCurve> curves = {curve("a", ta), curve("b", tb)};
    const std::vector<Crossover> found = crossovers(curves, "T");
    for (const Crossover& c : found) {
      const auto i = static_cast<std::size_t>(std::floor(std::log2(c.at)));
      ASSERT_LT(i + 1, ta.size());
      EXPECT_LT(curves[c.before].points[i].time, curves[c.after].points[i].time);
      EXPECT_GT(curves[c.before].points[i + 1].time, curves[c.after].points[i + 1].time);
      const auto [low, high] = std::minmax({ta[i], tb[i], ta[i + 1], tb[i + 1]});
      EXPECT_GE(to_us(c.time), low * (1 - 1e-12));
      EXPECT_LE(to_us(c.time), high * (1 + 1e-12));
    }
    const bool turned = (ta.front() < tb.front()) != (ta.back() < tb.back());
    EXPECT_EQ(found.size() % 2 == 1, turned);
  }
}

TEST(Sweep, PointsAreThoseOfSinglePredictions) {
  const Document d = test::small_document({"eager", "coda"});
  SweepRequest request{.setup = d.setup, .values = {128, 256}, .runs = d.runs.all()};
  const SweepChart chart = sweep(request);
  ASSERT_EQ(chart.curves.size(), 2U);
  const Results at_256 = test::results_of(d);
  for (std::size_t r = 0; r < 2; ++r) {
    ASSERT_EQ(chart.curves[r].points.size(), 2U);
    EXPECT_EQ(chart.curves[r].points[1].time, at_256.runs[r].result->totals.time);
    EXPECT_EQ(chart.curves[r].points[1].hbm, at_256.runs[r].result->totals.hbm());
    EXPECT_LT(chart.curves[r].points[0].time, chart.curves[r].points[1].time);
  }
}

TEST(Sweep, EveryAxisHasDefaultValuesThatWork) {
  Document d = test::small_document({"coda"});
  d.setup.fidelity = Fidelity::roofline;  // microseconds a point
  for (const Phase phase : {Phase::forward, Phase::decode}) {
    const gui::Setup setup = with_phase(d.setup, phase);
    for (const SweepAxis axis :
         {SweepAxis::tokens, SweepAxis::context, SweepAxis::batch, SweepAxis::width}) {
      if (axis == SweepAxis::context && phase == Phase::forward) continue;
      const std::vector<std::int64_t> values = default_values(setup, axis);
      EXPECT_GE(values.size(), 3U);
      const SweepChart chart = sweep({setup, axis, values, d.runs.all()});
      for (const SweepPoint& p : chart.curves[0].points) EXPECT_EQ(p.problem, "") << p.value;
    }
  }
}

TEST(Sweep, WidthKeepsTheModelsProportions) {
  const ModelConfig model = resolve(test::small_setup()).model;
  const ModelConfig twice = with_width(model, 2 * model.D);
  EXPECT_EQ(twice.H, 2 * model.H);
  EXPECT_EQ(twice.Hkv, 2 * model.Hkv);
  EXPECT_EQ(twice.F, 2 * model.F);
  EXPECT_EQ(twice.d, model.d);
  EXPECT_THROW(static_cast<void>(with_width(model, model.d + 1)), InputError);
}

TEST(Sweep, AValueThatIsRefusedIsAGapWithItsReason) {
  const Document d = test::small_document({"coda"});
  const SweepChart chart =
      sweep({with_phase(d.setup, Phase::decode), SweepAxis::tokens, {1, 4096}, d.runs.all()});
  EXPECT_EQ(chart.curves[0].points[0].problem, "");
  EXPECT_THAT(chart.curves[0].points[1].problem, HasSubstr("shorter than"));
}

TEST(Sweep, ReportsProgressAndCanBeStopped) {
  const Document d = test::small_document({"coda"});
  SweepRequest request{.setup = d.setup, .values = {128, 256, 512}, .runs = d.runs.all()};
  std::atomic<std::size_t> most = 0;
  static_cast<void>(sweep(request, {}, [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 3U);
    if (done > most) most = done;
  }));
  EXPECT_EQ(most, 3U);
  std::stop_source stop;
  EXPECT_THROW(static_cast<void>(sweep(request, stop.get_token(),
                                       [&](std::size_t, std::size_t) { stop.request_stop(); })),
               Cancelled);
}

TEST(SweepRange, HoldsItsEndsAndNoMoreThanCanBeDrawn) {
  const gui::Setup setup = test::small_setup();
  using V = std::vector<std::int64_t>;
  EXPECT_EQ(values_between(setup, SweepAxis::tokens, 100, 500), (V{100, 200, 400, 500}));
  const V wide = values_between(setup, SweepAxis::batch, 1, 1 << 20);
  EXPECT_LE(wide.size(), kMostSweepValues);
  EXPECT_EQ(wide.front(), 1);
  EXPECT_EQ(wide.back(), 1 << 20);
  EXPECT_TRUE(std::ranges::is_sorted(wide));
  for (const std::int64_t D : values_between(setup, SweepAxis::width, 100, 3000))
    EXPECT_EQ(D % 64, 0) << "no whole number of heads";
  EXPECT_THROW(static_cast<void>(values_between(setup, SweepAxis::tokens, 500, 100)), InputError);
  EXPECT_THROW(static_cast<void>(values_between(setup, SweepAxis::tokens, 0, 100)), InputError);
  EXPECT_THROW(static_cast<void>(values_between(setup, SweepAxis::width, 65, 66)), InputError);
}

// A width was divided by a width of heads of 0, which ended the window.
TEST(SweepRange, OfWidthsNeedsHeads) {
  gui::Setup setup = test::small_setup();
  setup.model = "mamba-2.8b";
  EXPECT_THROW(static_cast<void>(default_values(setup, SweepAxis::width)), InputError);
  EXPECT_THROW(static_cast<void>(values_between(setup, SweepAxis::width, 512, 4096)), InputError);
  EXPECT_THROW(static_cast<void>(with_width(load_model("mamba-2.8b"), 2560)), InputError);
  EXPECT_FALSE(default_values(setup, SweepAxis::tokens).empty());
}

}  // namespace
}  // namespace fuseline::gui
