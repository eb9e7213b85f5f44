#include "gui/model/validation_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "gui/model/delta.h"
#include "gui/model/edit_savings.h"
#include "gui/model/text.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Measurements small_measurements() {
  const Measurements all = load_measurements(default_document().measurements);
  Measurements few;
  few.path = all.path;
  few.meta = all.meta;
  for (const MeasuredBlock& b : all.blocks) {
    if (b.block.model == "llama2-7b" && b.block.workload.phase == Phase::forward) {
      few.blocks.push_back(b);
    }
  }
  few.blocks.resize(2);
  return few;
}

TEST(ValidationChart, RunsOfTheDocumentAreJudgedByTheirOwnPrediction) {
  const Results results = test::results_of(default_document());
  const ValidationChart chart = validation_of_runs(results);
  ASSERT_EQ(chart.scatters.size(), 2U);  // time and traffic
  EXPECT_EQ(chart.scatters[0].points.size(), 3U);
  const ScatterPoint& p = chart.scatters[0].points[0];
  EXPECT_EQ(p.run, results.runs[1].run.id);
  EXPECT_DOUBLE_EQ(p.at.x, 1530.29);
  EXPECT_EQ(p.inside_band, std::abs(p.error) <= 0.1);
  EXPECT_EQ(chart.scatters[0].inside_band, 3U);  // docs/cli.md: +0.0 % and -1.5 %; coda -0.9 %
  EXPECT_THAT(chart.source, HasSubstr("H200"));
}

TEST(ValidationChart, WithoutMeasurementsItSaysWhatToDo) {
  const ValidationChart chart =
      validation_of_runs(test::results_of(test::small_document({"eager"})));
  EXPECT_THAT(chart.scatters, IsEmpty());
  EXPECT_THAT(chart.problem, HasSubstr("add one"));
}

TEST(ValidationChart, JudgesAsTheCommandLineDoes) {
  const Measurements few = small_measurements();
  std::size_t steps = 0;
  const ErrorTable table =
      judge(load_gpu("h200"), few, {}, [&](std::size_t, std::size_t) { ++steps; });
  EXPECT_GE(steps, 4U);
  const ValidationChart chart = validation_chart(table, few.meta, load_gpu("h200"));
  ASSERT_EQ(chart.predictors, table.predictors);
  ASSERT_THAT(chart.scatters, Not(IsEmpty()));
  const Scatter& time = chart.scatters[0];
  EXPECT_EQ(time.quantity, Quantity::block_time);
  EXPECT_EQ(time.judged, 2U);
  for (const ScatterPoint& p : time.points) {
    EXPECT_GE(p.at.x, time.axis.low);
    EXPECT_LE(p.at.x, time.axis.high);
  }
  ASSERT_THAT(chart.errors, Not(IsEmpty()));
  for (const ErrorLine& line : chart.errors) {
    EXPECT_EQ(line.cells.size(), chart.predictors.size());
    EXPECT_EQ(line.meets_target.size(), chart.predictors.size());
  }
}

TEST(ValidationChart, MeasurementsAreJudgedForTheGpuThatTheyWereTakenOn) {
  const Measurements few = small_measurements();
  gui::Setup setup = default_document().setup;
  EXPECT_EQ(measured_gpu(setup, few).name, "h200");
  setup.gpu = "a100-sxm-80gb";
  setup.what_if.hbm_bandwidth = 2;
  const Gpu gpu = measured_gpu(setup, few);
  EXPECT_EQ(gpu.name, "h200");
  EXPECT_EQ(gpu.hbm_bandwidth, load_gpu("h200").hbm_bandwidth);
  EXPECT_EQ(whose_predictions(gpu, load_gpu("h200")), "");
  EXPECT_THAT(whose_predictions(gpu, load_gpu("a100-sxm-80gb")),
              ::testing::AllOf(HasSubstr("predictions for NVIDIA H200"), HasSubstr("A100")));
}

TEST(ValidationChart, MeasurementsOfAnUnknownGpuAreNotJudged) {
  Measurements few = small_measurements();
  few.meta.gpu = "";
  EXPECT_THROW(static_cast<void>(measured_gpu(gui::Setup{}, few)), InputError);
  few.meta.gpu = "h2000";
  EXPECT_THROW(static_cast<void>(measured_gpu(gui::Setup{}, few)), InputError);
}

TEST(ValidationChart, JudgingCanBeStopped) {
  std::stop_source stop;
  std::size_t steps = 0;
  EXPECT_THROW(static_cast<void>(judge(load_gpu("h200"), small_measurements(), stop.get_token(),
                                       [&](std::size_t, std::size_t) {
                                         ++steps;
                                         stop.request_stop();
                                       })),
               Cancelled);
  EXPECT_EQ(steps, 1U);
}

TEST(Deltas, NearlyEqualIsNeutral) {
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(1009)).size, DeltaSize::neutral);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(1009)).colour.role, ColourRole::neutral);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(1010)).size, DeltaSize::small);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(949)).size, DeltaSize::medium);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(800)).size, DeltaSize::large);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(800)).colour.role, ColourRole::better);
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(1200)).colour.role, ColourRole::worse);
  EXPECT_EQ(delta_of(Bytes(1'000'000), Bytes(800'000)).absolute_text, "−200.0 kB");
  EXPECT_EQ(delta_of(Bytes(1000), Bytes(800)).relative_text, "−20.0 %");
  EXPECT_EQ(delta_of(Bytes(0), Bytes(800)).relative_text, "new");
  EXPECT_EQ(delta_of(Bytes(0), Bytes(0)).size, DeltaSize::neutral);
}

TEST(Texts, ShowAmountsShortAndExact) {
  EXPECT_EQ(short_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(short_bytes(Bytes(999)), "999 B");
  EXPECT_EQ(short_bytes(Bytes(412'345'678)), "412.3 MB");
  EXPECT_EQ(short_bytes(Bytes(999'960'000)), "1.00 GB");
  EXPECT_EQ(exact_bytes(Bytes(412'345'678)), "412,345,678 bytes");
  EXPECT_EQ(exact_bytes(Bytes(1)), "1 byte");
  EXPECT_EQ(short_time(microseconds(1530.29)), "1530.3 µs");
  EXPECT_EQ(short_time(microseconds(15302.9)), "15.30 ms");
  EXPECT_EQ(signed_bytes(Bytes(-1500)), "−1.50 kB");
  EXPECT_EQ(speed_text(1.26), "1.26× faster");
  EXPECT_EQ(speed_text(0.5), "2.00× slower");
  EXPECT_EQ(speed_text(1.005), "as fast");
}

TEST(Texts, WhatRoundsToNothingHasNoSign) {
  EXPECT_EQ(signed_percent_text(-0.0001), "0.0 %");
  EXPECT_EQ(signed_percent_text(0.0004), "0.0 %");
  EXPECT_EQ(signed_percent_text(0), "0.0 %");
  EXPECT_EQ(signed_percent_text(-0.0006), "−0.1 %");
  EXPECT_EQ(signed_percent_text(0.1), "+10.0 %");
  EXPECT_EQ(signed_time(microseconds(0)).find_first_of("+−"), std::string::npos);
  EXPECT_EQ(signed_bytes(Bytes(0)), "0 B");
  EXPECT_EQ(signed_bytes(Bytes(-1)), "−1 B");
  EXPECT_EQ(delta_of(microseconds(1000), microseconds(999.9)).relative_text, "0.0 %");
}

}  // namespace
}  // namespace fuseline::gui
