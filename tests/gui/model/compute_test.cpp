#include "gui/model/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/error.h"
#include "gui/model/command_text.h"
#include "gui/model/run_plan.h"
#include "tests/cli/cli_run.h"
#include "tests/gui/model/gui_support.h"

namespace fuseline::gui {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(Compute, NumbersAreTheCommandLines) {
  const Results results = test::results_of(test::small_document({"eager", "coda"}));
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "256",
                          "--policy", "eager,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json predictions = json::parse(run.out).at("predictions");
  ASSERT_EQ(results.runs.size(), predictions.size());
  for (std::size_t r = 0; r < predictions.size(); ++r) {
    const json& p = predictions[r];
    const Totals& t = results.runs[r].result->totals;
    EXPECT_EQ(p.at("hbm_read_bytes"), t.hbm_read.value());
    EXPECT_EQ(p.at("hbm_write_bytes"), t.hbm_write.value());
    EXPECT_EQ(p.at("l2_bytes"), t.l2.value());
    EXPECT_EQ(p.at("flops"), t.flops.value());
    EXPECT_EQ(p.at("launches"), t.launches);
    EXPECT_EQ(p.at("time_us"), to_us(t.time));
    ASSERT_EQ(p.at("kernels").size(), results.runs[r].result->kernels.size());
    for (std::size_t k = 0; k < p.at("kernels").size(); ++k) {
      EXPECT_EQ(p.at("kernels")[k].at("hbm_read_bytes"),
                results.runs[r].result->kernels[k].estimate.hbm_read.value());
    }
  }
}

// A plan's file has the numbers of the plan that it was printed from, and another block's has none.
TEST(Compute, APlanOfAFileIsARunOfItsOwn) {
  const std::string file = testing::TempDir() + "/of_a_file.fuse";
  const CliRun printed = cli({"explain", "--model", "tinyllama", "--gpu", "h200", "--seq", "256",
                              "--policy", "coda", "--format", "program"});
  ASSERT_EQ(printed.status, 0) << printed.err;
  std::ofstream(file) << printed.out;
  Document d = test::small_document({"eager", "coda"});
  d.runs.add(run_of_plan(file));
  const Results results = test::results_of(d);
  ASSERT_EQ(results.runs.size(), 3U);
  const RunView &coda = results.runs[1], &own = results.runs[2];
  EXPECT_EQ(own.run.name, "of_a_file");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own.result->totals.time, coda.result->totals.time);
  EXPECT_EQ(own.result->totals.hbm_read, coda.result->totals.hbm_read);
  EXPECT_EQ(own.result->kernels.size(), coda.result->kernels.size());
  EXPECT_EQ(command_of_run(d, own.run, "").command,
            "fuseline predict --model tinyllama --gpu h200 --phase forward --batch 1 --seq 256 "
            "--plan " +
                file);
  d.setup.workload.seq = 512;
  const Results other = test::results_of(d);
  EXPECT_FALSE(other.runs[2].ok());
  ASSERT_TRUE(other.runs[2].result->problem);
  EXPECT_THAT(other.runs[2].result->problem->text, HasSubstr("one of another block"));
  // A text that is no plan is no run.
  std::ofstream(file) << "fuse 1\nprogram\n";
  EXPECT_THROW((void)run_of_plan(file), InputError);
}

TEST(Compute, EveryLaunchBelongsToAPlannedKernelAndStartsWhereTheLastEnded) {
  for (const Phase phase : {Phase::forward, Phase::decode}) {
    Document d = test::small_document({"eager", "coda", "torch-compile"});
    d.setup = with_phase(d.setup, phase);
    if (phase == Phase::forward) d.setup.workload.seq = 256;
    const Results results = test::results_of(d);
    for (const RunView& view : results.runs) {
      ASSERT_TRUE(view.ok()) << view.run.name;
      Seconds now;
      std::size_t last = 0;
      for (const KernelRow& row : view.result->kernels) {
        ASSERT_TRUE(row.plan_kernel.has_value());
        EXPECT_GE(*row.plan_kernel, last);
        EXPECT_LE(*row.plan_kernel, last + 1);
        last = *row.plan_kernel;
        EXPECT_EQ(row.start, now);
        now += row.estimate.time;
      }
      EXPECT_EQ(last + 1, view.result->plan->kernels.size());
    }
  }
}

TEST(Compute, AnEditComputesOnlyTheRunThatItChanges) {
  Document d = test::small_document({"eager", "coda"});
  const RunId custom = d.runs.add({.policy = kCustomPolicy});
  ResultCache cache;
  EXPECT_EQ(compute(d, cache).computed, 3U);
  EXPECT_EQ(compute(d, cache).computed, 0U);
  d.runs.set_custom(custom, {{}, {{"down", "residual2"}}});
  EXPECT_EQ(compute(d, cache).computed, 1U);
  d.runs.set_baseline(custom);
  d.runs.rename(custom, "mine");
  EXPECT_EQ(compute(d, cache).computed, 0U);
  d.setup.workload.seq = 128;
  EXPECT_EQ(compute(d, cache).computed, 3U);
}

TEST(Compute, APinnedRunKeepsItsSetup) {
  Document d = test::small_document({"eager", "coda"});
  d.runs.set_setup(d.runs.all()[0].id, d.setup);
  ResultCache cache;
  const Results before = compute(d, cache);
  d.setup.workload.seq = 512;
  const Results after = compute(d, cache);
  EXPECT_EQ(after.computed, 1U);
  EXPECT_EQ(before.runs[0].result->totals.time, after.runs[0].result->totals.time);
  EXPECT_LT(before.runs[1].result->totals.time, after.runs[1].result->totals.time);
}

TEST(Compute, AWrongRunHasItsProblemAndTheOthersTheirResults) {
  Document d = test::small_document({"eager"});
  d.runs.add({.policy = "tensorrt-llm"});
  d.setup.workload.phase = Phase::train;
  const Results results = test::results_of(d);
  EXPECT_TRUE(results.runs[0].ok());
  ASSERT_TRUE(results.runs[1].result->problem.has_value());
  EXPECT_THAT(results.runs[1].result->problem->text, HasSubstr("no plan for the backward pass"));
  EXPECT_FALSE(results.runs[1].result->problem->something_missing);
}

TEST(Compute, AMeasurementThatIsNotThereSaysWhatIs) {
  Document d = test::small_document({"eager"});
  d.setup = default_document().setup;
  d.setup.workload.seq = 333;
  d.runs.add({.policy = "eager", .measurements = default_document().measurements});
  const Results results = test::results_of(d);
  ASSERT_TRUE(results.runs[1].result->problem.has_value());
  EXPECT_TRUE(results.runs[1].result->problem->something_missing);
  EXPECT_THAT(results.runs[1].result->problem->text, HasSubstr("forward 1x2048"));
  d.setup.gpu = "h100-sxm";  // no measurement of another GPU
  EXPECT_THAT(test::results_of(d).runs[1].result->problem->text,
              HasSubstr("was measured on h200, and the setup says h100-sxm"));
}

TEST(Compute, AStoppedComputationHasNoResult) {
  std::stop_source stop;
  stop.request_stop();
  ResultCache cache;
  EXPECT_THROW(static_cast<void>(compute(test::small_document(), cache, stop.get_token())),
               Cancelled);
  EXPECT_EQ(cache.size(), 0U);
}

TEST(Compute, ProgressEndsAtTheNumberOfRuns) {
  std::mutex mutex;
  std::vector<std::size_t> seen;
  ResultCache cache;
  static_cast<void>(compute(test::small_document({"eager", "coda", "xla"}), cache, {},
                            [&](std::size_t done, std::size_t total) {
                              const std::lock_guard lock(mutex);
                              EXPECT_EQ(total, 3U);
                              seen.push_back(done);
                            }));
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre(1U, 2U, 3U));
}

TEST(ResultCache, KeepsTheLatestOfAWindowAtRest) {
  ResultCache cache(8);
  for (const char* key : {"a", "b", "c", "d"}) cache.store(key, std::make_shared<RunResult>());
  static_cast<void>(cache.find("a"));  // used again
  cache.keep_latest(2);
  EXPECT_EQ(cache.size(), 2U);
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_NE(cache.find("d"), nullptr);
  EXPECT_EQ(cache.find("c"), nullptr);
  cache.keep_latest(5);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(ResultCache, ForgetsTheLeastRecentlyUsed) {
  ResultCache cache(2);
  const auto result = std::make_shared<const RunResult>();
  cache.store("a", result);
  cache.store("b", result);
  EXPECT_NE(cache.find("a"), nullptr);
  cache.store("c", result);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_NE(cache.find("a"), nullptr);
  EXPECT_EQ(cache.size(), 2U);
}

TEST(DefaultDocument, IsARealComparisonOfPredictedAndMeasured) {
  const Document d = default_document();
  std::vector<std::string> names;
  for (const gui::Run& run : d.runs.all()) names.push_back(run.name);
  EXPECT_THAT(names, ::testing::ElementsAre("eager", "eager, measured", "torch-compile",
                                            "torch-compile, measured", "coda", "coda, measured"));
  EXPECT_EQ(d.runs.at(d.runs.baseline()).name, "eager");
  const Results results = test::results_of(d);
  for (const RunView& view : results.runs) {
    EXPECT_TRUE(view.ok()) << view.run.name << ": "
                           << (view.result->problem ? view.result->problem->text : "");
  }
  // The measured numbers are those of the shipped files: 1.53029 ms, and 21 launches.
  const RunResult& measured = *results.runs[1].result;
  EXPECT_DOUBLE_EQ(to_us(measured.totals.time), 1530.29);
  EXPECT_EQ(measured.totals.launches, 21);
  EXPECT_FALSE(measured.source.empty());
  std::size_t matched = 0;
  for (const KernelRow& row : measured.kernels) matched += row.plan_kernel ? 1 : 0;
  EXPECT_EQ(matched, 21U);
  // Our own kernels, from a folder of their own.
  const RunResult& own = *results.runs[5].result;
  EXPECT_NE(own.source, measured.source);
  EXPECT_EQ(own.totals.launches, 7);
}

TEST(ComparedTotals, APredictionIsComparedWithItsMeasurementAsReplays) {
  const Results results = test::results_of(default_document());
  const ComparedTotals like = comparable_totals(results.runs[0], results.runs[1]);
  EXPECT_TRUE(like.like_for_like);
  EXPECT_EQ(like.base.hbm(), totals_of(*results.runs[1].result->predicted).hbm());
  EXPECT_EQ(like.other.hbm(), results.runs[1].result->totals.hbm());
  EXPECT_FALSE(comparable_totals(results.runs[0], results.runs[3]).like_for_like);
  EXPECT_FALSE(comparable_totals(results.runs[0], results.runs[4]).like_for_like);
}

}  // namespace
}  // namespace fuseline::gui
