// Pinned runs, and measurements under "what if", are of another machine than their neighbours: that
// is said wherever they stand.
#include "gui/model/run_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gui/model/chart_colours.h"
#include "gui/model/export.h"
#include "gui/model/roofline_chart.h"
#include "gui/model/run_rows.h"
#include "gui/model/timeline_chart.h"
#include "gui/model/traffic_chart.h"
#include "gui/model/validation_chart.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// `eager` is pinned to the H200; the session then goes on with `gpu`.
Document pinned_document(const std::string& gpu) {
  Document d = test::small_document({"eager", "coda"});
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  d.setup.gpu = gpu;
  return d;
}

std::vector<std::string> labels_of(const Results& results) {
  std::vector<std::string> labels;
  for (const RunView& view : results.runs) labels.push_back(view.label());
  return labels;
}

TEST(RunMachine, IsNotSaidWhereAllRunsAreOfOne) {
  EXPECT_THAT(labels_of(test::results_of(test::small_document())),
              ::testing::ElementsAre("eager", "coda"));
}

TEST(RunMachine, IsSaidInThePartsInWhichRunsDiffer) {
  EXPECT_THAT(labels_of(test::results_of(pinned_document("h100-sxm"))),
              ::testing::ElementsAre("eager (h200)", "coda (h100-sxm)"));
  Document d = pinned_document("h200");
  d.setup.workload.seq = 128;
  EXPECT_THAT(labels_of(test::results_of(d)),
              ::testing::ElementsAre(HasSubstr("(forward, batch 1, 256 tokens"),
                                     HasSubstr("(forward, batch 1, 128 tokens")));
  d.setup = with_phase(d.setup, Phase::decode);
  d.setup.model = "llama2-7b";
  EXPECT_THAT(labels_of(test::results_of(d))[1],
              ::testing::AllOf(HasSubstr("LLaMA-2-7B · decode"), Not(HasSubstr("h200"))));
}

TEST(RunMachine, StandsInTheListOfRunsTheChartsAndTheExport) {
  const Document d = pinned_document("h100-sxm");
  const Results results = test::results_of(d);
  const std::vector<RunRow> rows = run_rows(d, results);
  EXPECT_EQ(rows[0].label, "eager (h200)");
  EXPECT_EQ(rows[0].name, "eager");
  EXPECT_THAT(rows[0].machine,
              HasSubstr("TinyLlama-1.1B · NVIDIA H200 SXM 141 GB · forward, batch 1, 256 tokens"));
  EXPECT_THAT(rows[1].machine, HasSubstr("NVIDIA H100 SXM5 80 GB"));
  EXPECT_THAT(rows[1].note, HasSubstr("the baseline is of NVIDIA H200 SXM 141 GB"));
  EXPECT_EQ(traffic_chart(results, StackBy::kernel).bars[1].machine, "h100-sxm");
  EXPECT_EQ(timeline_chart(results, Align::start).rows[1].machine, "h100-sxm");
  const Table table = runs_table(results);
  const auto column =
      static_cast<std::size_t>(std::ranges::find(table.columns, "gpu") - table.columns.begin());
  ASSERT_LT(column, table.columns.size());
  EXPECT_EQ(table.rows[0][column], Cell(std::string("h200")));
  EXPECT_EQ(table.rows[1][column], Cell(std::string("h100-sxm")));
  for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size());
}

TEST(RunMachine, GpusOfOneNameAreToldApartByTheirTitles) {
  Document d = test::small_document({"eager", "coda"});
  d.setup.what_if.sm_clock = 0.5;
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  d.setup.what_if.sm_clock = 2;
  const std::vector<std::string> labels = labels_of(test::results_of(d));
  EXPECT_THAT(labels[0], HasSubstr("what if SM clock × 0.5"));
  EXPECT_THAT(labels[1], HasSubstr("what if SM clock × 2"));
}

TEST(RunMachine, TheLimitIsSaidToBeTheBaselinesWhereBlocksDiffer) {
  Document d = pinned_document("h200");
  EXPECT_THAT(traffic_chart(test::results_of(d), StackBy::kernel).limit_label,
              Not(HasSubstr("baseline")));
  d.setup.workload.seq = 128;
  EXPECT_THAT(traffic_chart(test::results_of(d), StackBy::kernel).limit_label,
              HasSubstr("for the baseline's block"));
}

std::vector<std::string> labels_of(const RooflineChart& chart) {
  std::vector<std::string> labels;
  for (const Ceiling& c : chart.ceilings) labels.push_back(c.label);
  return labels;
}

TEST(RooflineChart, EachGpuHasItsOwnRoofs) {
  const RooflineChart one =
      roofline_chart(test::results_of(pinned_document("h200")), MemoryLevel::hbm);
  EXPECT_THAT(labels_of(one), Each(Not(HasSubstr("h200"))));
  const Results results = test::results_of(pinned_document("h100-sxm"));
  const RooflineChart two = roofline_chart(results, MemoryLevel::hbm);
  EXPECT_EQ(two.ceilings.size(), 2 * one.ceilings.size());
  EXPECT_THAT(labels_of(two), Contains(HasSubstr("h200: HBM 4.80 TB/s")));
  EXPECT_THAT(labels_of(two), Contains(HasSubstr("h100-sxm: HBM 3.35 TB/s")));
  EXPECT_THAT(two.title, HasSubstr("NVIDIA H200 SXM 141 GB and NVIDIA H100 SXM5 80 GB"));
  EXPECT_NE(two.ceilings.front().colour, two.ceilings.back().colour);
  EXPECT_THAT(two.not_compared, IsEmpty());  // the same block on two GPUs
  // No prediction lies above the roofs of its own GPU.
  for (const RooflinePoint& p : two.points) {
    const Gpu& gpu = results.find(p.run)->result->block->gpu;
    EXPECT_LE(p.at.y, p.at.x * gpu.hbm_bandwidth.value() * 1.000001) << p.label;
  }
}

TEST(RooflineChart, AxesHoldTheRoofsOfEveryGpu) {
  const Results results = test::results_of(pinned_document("rtx3090"));
  for (const MemoryLevel level : {MemoryLevel::hbm, MemoryLevel::l2}) {
    const RooflineChart c = roofline_chart(results, level);
    for (const Ceiling& ceiling : c.ceilings) {
      for (const Point& end : {ceiling.from, ceiling.to}) {
        EXPECT_GE(end.x, c.x.low * 0.999) << ceiling.label;
        EXPECT_LE(end.x, c.x.high * 1.001) << ceiling.label;
        EXPECT_GE(end.y, c.y.low * 0.999) << ceiling.label;
        EXPECT_LE(end.y, c.y.high * 1.001) << ceiling.label;
      }
    }
  }
}

TEST(RooflineChart, RunsOfAnotherBlockThanTheBaselinesAreNotCompared) {
  Document d = pinned_document("h200");
  d.setup.workload.seq = 128;
  const Results results = test::results_of(d);
  const RooflineChart c = roofline_chart(results, MemoryLevel::hbm);
  EXPECT_THAT(c.arrows, IsEmpty());
  EXPECT_THAT(c.not_compared, ::testing::ElementsAre(results.runs[1].label()));
}

// A run and what was measured of it have one colour, whatever is pinned.
TEST(ChartColours, ARunAndItsMeasurementKeepOneHueWhateverIsPinned) {
  const Document opened = default_document();
  ResultCache cache;
  const auto expect_pairs = [&cache](const Document& d, const std::string& what) {
    const Results results = compute(d, cache);
    const auto colour = [&](std::size_t i) {
      return colour_of_run(results, results.runs[i].run.id);
    };
    for (const std::size_t i : {0U, 2U, 4U}) EXPECT_EQ(colour(i), colour(i + 1)) << what << i;
    EXPECT_NE(colour(0), colour(2)) << what;
    EXPECT_NE(colour(2), colour(4)) << what;
  };
  expect_pairs(opened, "as opened, ");
  for (std::size_t i = 0; i < opened.runs.all().size(); ++i) {
    Document d = opened;
    d.runs.set_setup(d.runs.all()[i].id, d.setup);
    expect_pairs(d, "pinned, ");
    d.setup.gpu = "h100-sxm";
    expect_pairs(d, "pinned, then another GPU, ");
    d = opened;
    d.runs.set_baseline(d.runs.all()[i].id);
    expect_pairs(d, "another baseline, ");
  }
}

TEST(ChartColours, OfTwoPredictionsAMeasurementFollowsTheOneOfItsBlock) {
  Document d = default_document();
  const RunId other = d.runs.add({.policy = "torch-compile"});
  gui::Setup h100 = d.setup;
  h100.gpu = "h100-sxm";
  const RunId first = d.runs.all()[2].id, measured = d.runs.all()[3].id;
  d.runs.set_setup(first, h100);
  const Results results = test::results_of(d);
  EXPECT_EQ(colour_of_run(results, measured), colour_of_run(results, other));
  EXPECT_NE(colour_of_run(results, measured), colour_of_run(results, first));
}

TEST(WhatIf, MeasurementsAreThoseOfTheUnchangedMachine) {
  Document d = default_document();
  const Results before = test::results_of(d);
  d.setup.what_if.hbm_bandwidth = 2;
  const Results results = test::results_of(d);
  const std::vector<RunRow> rows = run_rows(d, results);
  for (const std::size_t i : {1U, 3U, 5U}) {
    ASSERT_TRUE(results.runs[i].ok()) << results.runs[i].result->problem->text;
    EXPECT_EQ(results.runs[i].result->totals.time, before.runs[i].result->totals.time);
    EXPECT_EQ(results.runs[i].result->block->gpu.name, "h200");
    EXPECT_THAT(results.runs[i].label(), ::testing::EndsWith("(h200)"));
    EXPECT_FALSE(rows[i].has_problem);
    EXPECT_THAT(rows[i].note, HasSubstr("measured on the unchanged GPU"));
    // Two machines: never compared as one.
    EXPECT_FALSE(comparable_totals(results.runs[i - 1], results.runs[i]).like_for_like);
  }
  EXPECT_EQ(results.runs[0].label(), "eager (h200+what-if)");
  EXPECT_THAT(rows[0].machine, HasSubstr("what if HBM bandwidth × 2"));
  // They are judged by predictions for that machine.
  const ValidationChart chart = validation_of_runs(results), was = validation_of_runs(before);
  ASSERT_EQ(chart.scatters.size(), was.scatters.size());
  for (std::size_t i = 0; i < was.scatters[0].points.size(); ++i) {
    EXPECT_EQ(chart.scatters[0].points[i].at, was.scatters[0].points[i].at);
  }
}

TEST(WhatIf, AStepOfASliderReadsNoMeasurementAnew) {
  Document d = default_document();
  ResultCache cache;
  static_cast<void>(compute(d, cache));
  d.setup.what_if.hbm_bandwidth = 2;
  EXPECT_EQ(compute(d, cache).computed, 3U);  // the predictions
}

}  // namespace
}  // namespace fuseline::gui
