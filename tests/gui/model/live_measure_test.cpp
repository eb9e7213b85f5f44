// Measuring from the window: the command, and what it has said beside the predictions.
#include "gui/model/live_measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

MeasuredBlock measured(const LiveRun& run, double times) {
  MeasuredBlock block{.block = run.block, .time = {}};
  const Seconds t = run.predicted * times;
  block.time = {t, t * 0.99, t * 1.01};
  return block;
}

TEST(LiveMeasure, TheCommandMeasuresThePredictionsOfTheSetup) {
  Document d = test::small_document({"eager", "coda"});
  d.layers = std::nullopt;
  const LiveRequest r = live_request(d, test::results_of(d), "fuseline");
  EXPECT_EQ(r.problem, "");
  EXPECT_THAT(r.shell, StartsWith("fuseline measure --model tinyllama --gpu h200"));
  EXPECT_THAT(r.shell, HasSubstr("--policy eager,coda"));
  EXPECT_THAT(r.shell, EndsWith(" --format lines"));
  EXPECT_THAT(r.shell, Not(HasSubstr("--layers")));
  ASSERT_EQ(r.runs.size(), 2U);
  EXPECT_EQ(r.runs[1].block.execution, "coda");
}

TEST(LiveMeasure, OnAnotherMachineAllArgumentsAreOneWord) {
  const Document d = test::small_document({"coda"});
  const LiveRequest r = live_request(d, test::results_of(d), "ssh box /opt/fuseline {} 2>&1");
  EXPECT_THAT(r.shell, StartsWith("ssh box /opt/fuseline 'measure --model tinyllama"));
  EXPECT_THAT(r.shell, EndsWith("--format lines' 2>&1"));
}

TEST(LiveMeasure, WhatWordsCannotSayIsLeftOutByName) {
  Document d = test::small_document({"eager"});
  d.runs.add({.name = "mine", .policy = kCustomPolicy});
  LiveRequest r = live_request(d, test::results_of(d), "fuseline");
  EXPECT_EQ(r.problem, "");
  EXPECT_THAT(r.note, HasSubstr("mine"));
  EXPECT_THAT(r.shell, HasSubstr("--policy eager "));
  d.setup.what_if.hbm_bandwidth = 2;
  r = live_request(d, test::results_of(d), "fuseline");
  EXPECT_THAT(r.problem, HasSubstr("what if"));
  EXPECT_EQ(r.shell, "");
  EXPECT_NE(live_request(d, test::results_of(d), "  ").problem, "");
}

TEST(LiveMeasure, BarsFillInAsLinesArrive) {
  const Document d = test::small_document({"eager", "coda"});
  const LiveRequest r = live_request(d, test::results_of(d), "fuseline");
  MeasuringReader reader;
  EXPECT_THAT(live_chart(r, reader.seen(), true).status, HasSubstr("nothing has come"));
  reader.feed(progress_line("coda: timing", 0.42) + block_line(measured(r.runs[1], 1.1)));
  LiveChart chart = live_chart(r, reader.seen(), true);
  EXPECT_EQ(chart.status, "coda: timing, 42 %");
  EXPECT_FALSE(chart.rows[0].measured);
  ASSERT_TRUE(chart.rows[1].measured);
  EXPECT_NEAR(chart.rows[1].measured->time.median / r.runs[1].predicted, 1.1, 1e-9);
  const Table table = to_table(chart);
  EXPECT_EQ(unlike_in(table), "");
  EXPECT_NEAR(std::get<double>(table.rows[1].back()), 1 / 1.1 - 1, 1e-9);
  reader.feed(end_line(false, "y is off"));
  chart = live_chart(r, reader.seen(), false);
  EXPECT_TRUE(chart.failed);
  EXPECT_EQ(chart.status, "failed: y is off");
}

TEST(LiveMeasure, ABlockOfOtherSizesFillsNoBar) {
  const Document d = test::small_document({"coda"});
  const LiveRequest r = live_request(d, test::results_of(d), "fuseline");
  MeasuredBlock other = measured(r.runs[0], 1);
  other.block.workload.seq = 17;
  MeasuringReader reader;
  reader.feed(block_line(other));
  EXPECT_FALSE(live_chart(r, reader.seen(), true).rows[0].measured);
}

TEST(LiveMeasure, AFailureSaysWhatTheCommandSaid) {
  EXPECT_THAT(reason_of_failure({}, "a\nb\nc\nssh: no route to host\n", 255),
              HasSubstr("no route to host\nthe command ended with status 255"));
  EXPECT_THAT(reason_of_failure({}, "", 127), HasSubstr("not found"));
  Measuring failed;
  failed.passed = false;
  failed.text = "y is off";
  EXPECT_EQ(reason_of_failure(failed, "noise", 1), "y is off");
}

TEST(LiveMeasure, EveryMeasurementHasAFolderOfItsOwn) {
  const TemporaryFolder folder("fuseline-test");
  const Document d = test::small_document({"coda"});
  const LiveRequest r = live_request(d, test::results_of(d), "fuseline");
  const auto first = folder_for_measured(folder.path() / "measured", r);
  EXPECT_EQ(first.filename(), "tinyllama-forward");
  std::filesystem::create_directories(first);
  EXPECT_EQ(folder_for_measured(folder.path() / "measured", r).filename(), "tinyllama-forward-2");
}

}  // namespace
}  // namespace fuseline::gui
