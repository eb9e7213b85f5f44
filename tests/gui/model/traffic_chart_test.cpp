#include "gui/model/traffic_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "gui/model/waterfall.h"
#include "model/blocks/block.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;

void expect_stacked(const TrafficBar& bar, Bytes total) {
  Bytes now;
  for (const BarPart& part : bar.parts) {
    EXPECT_EQ(part.from, now) << bar.label << " " << part.label;
    EXPECT_GT(part.bytes, Bytes(0)) << bar.label << " " << part.label;
    now += part.bytes;
  }
  EXPECT_EQ(now, bar.total);
  EXPECT_EQ(bar.total, total) << bar.label;
}

TEST(TrafficChart, PartsAddUpToTheRunsBytesExactly) {
  const Results results = test::results_of(default_document());
  for (const StackBy by : {StackBy::kernel, StackBy::tensor}) {
    const TrafficChart chart = traffic_chart(results, by);
    ASSERT_EQ(chart.bars.size(), results.runs.size());
    for (std::size_t i = 0; i < chart.bars.size(); ++i) {
      expect_stacked(chart.bars[i], results.runs[i].result->totals.hbm());
    }
  }
}

TEST(TrafficChart, PredictedStandsBesideMeasuredAndIsComparedLikeForLike) {
  const Results results = test::results_of(default_document());
  const TrafficChart chart = traffic_chart(results, StackBy::kernel);
  EXPECT_FALSE(chart.bars[0].measured);
  EXPECT_TRUE(chart.bars[1].measured);
  EXPECT_EQ(chart.bars[0].policy, chart.bars[1].policy);
  EXPECT_TRUE(chart.bars[1].like_for_like);
  EXPECT_EQ(chart.bars[1].delta.size, DeltaSize::small);  // below 5 % apart, docs/cli.md
  EXPECT_EQ(chart.bars[4].delta.size, DeltaSize::large);
  EXPECT_EQ(chart.bars[4].delta.colour.role, ColourRole::better);
}

TEST(TrafficChart, TheLimitIsTheBaselinesCompulsoryTraffic) {
  const Results results = test::results_of(default_document());
  const TrafficChart chart = traffic_chart(results, StackBy::kernel);
  EXPECT_EQ(chart.limit, results.runs[0].result->predicted->limits.least);
  for (const TrafficBar& bar : chart.bars) EXPECT_GT(bar.total, chart.limit);
  EXPECT_THAT(chart.limit_label, HasSubstr("404.8 MB"));
}

TEST(TrafficChart, RooflineAndRunsWithoutResultsHaveBarsToo) {
  Document d = test::small_document({"eager"});
  d.setup.fidelity = Fidelity::roofline;
  d.runs.add({.policy = "eager", .measurements = default_document().measurements});
  const Results results = test::results_of(d);
  const TrafficChart chart = traffic_chart(results, StackBy::tensor);
  expect_stacked(chart.bars[0], results.runs[0].result->totals.hbm());
  EXPECT_THAT(chart.bars[1].note, HasSubstr("not measured"));
}

class WaterfallOf : public testing::TestWithParam<const char*> {};

TEST_P(WaterfallOf, StepsAddUpToTheDifferenceExactly) {
  Document d = test::small_document({"unfused", GetParam()});
  const Results results = test::results_of(d);
  const RunView& target = results.runs[1];
  const Waterfall chart = waterfall(target);
  ASSERT_GE(chart.steps.size(), 4U);
  const WaterfallStep& first = chart.steps.front();
  EXPECT_EQ(first.kind, StepKind::total);
  EXPECT_EQ(first.after, results.runs[0].result->totals.hbm());
  Bytes saved, now = first.after;
  for (std::size_t i = 1; i < chart.steps.size(); ++i) {
    const WaterfallStep& s = chart.steps[i];
    if (s.kind == StepKind::total) {
      EXPECT_EQ(s.after, target.result->totals.hbm());
      EXPECT_EQ(s.after, now);
      continue;
    }
    EXPECT_EQ(s.before, now) << s.label;
    now = s.after;
    if (s.kind != StepKind::limit) saved += s.saved();
  }
  EXPECT_EQ(saved, results.runs[0].result->totals.hbm() - target.result->totals.hbm());
  EXPECT_EQ(chart.steps.back().kind, StepKind::limit);
  EXPECT_EQ(now, target.result->predicted->limits.least);
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, WaterfallOf,
                         testing::Values("unfused", "composed", "eager", "per-operator",
                                         "flash-attention", "tensorrt-llm", "xla", "torch-compile",
                                         "coda", "whole-block"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Waterfall, HasOneStepForEachFusedKernel) {
  Document d = test::small_document({"eager"});
  d.runs.add({.policy = kCustomPolicy,
              .custom = {{"interleave_gate_up"},
                         {{"gate_up", "swiglu"}, {"down", "residual2"}, {"oproj", "residual1"}}}});
  const Waterfall chart = waterfall(test::results_of(d).runs[1]);
  int fusions = 0;
  for (const WaterfallStep& s : chart.steps) {
    fusions += s.kind == StepKind::fusion ? 1 : 0;
    EXPECT_NE(s.kind, StepKind::rest);  // a custom plan is nothing but its choices
  }
  EXPECT_EQ(fusions, 3);
}

TEST(Waterfall, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  const Results results = test::results_of(test::small_document({"coda"}));
  EXPECT_THROW(static_cast<void>(waterfall(results.runs[0], stop.get_token())), Cancelled);
}

TEST(Waterfall, WorksForTraining) {
  Document d = test::small_document({"coda"});
  d.setup.workload.phase = Phase::train;
  const Results results = test::results_of(d);
  ASSERT_TRUE(results.runs[0].ok()) << results.runs[0].result->problem->text;
  const Waterfall chart = waterfall(results.runs[0]);
  Bytes now = chart.steps.front().after;
  for (std::size_t i = 1; i < chart.steps.size(); ++i) {
    if (chart.steps[i].kind == StepKind::total) continue;
    EXPECT_EQ(chart.steps[i].before, now);
    now = chart.steps[i].after;
  }
}

}  // namespace
}  // namespace fuseline::gui
