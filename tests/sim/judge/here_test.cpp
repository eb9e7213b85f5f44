#include "sim/judge/here.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/data_dir.h"
#include "base/data_files.h"
#include "base/error.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/constant_table.h"
#include "sim/gpu/plan_target.h"
#include "sim/gpu/standing.h"
#include "sim/judge/refit.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A GPU that is the described one but for some constants, and runs exactly as simulated.
class StandIn : public Measurer {
 public:
  explicit StandIn(Gpu truth) : truth_(std::move(truth)) {}

  Measurements measure(const HereStep& step) override {
    ++steps;
    time += Seconds(20);
    if (fails_at == steps) throw MissingError("the memory is too small");
    Measurements m;
    m.meta.gpu = truth_.name;
    m.meta.title = "a stand-in";
    const ModelConfig model = load_model(step.model);
    for (const std::string& policy : step.policies) {
      const Plan plan = make_plan(policy, model, step.workload, plan_target(truth_));
      const Seconds t = simulate(plan, truth_, Fidelity::hierarchy, {.replay = true}).time;
      m.blocks.push_back(
          {.block = {step.model, policy, step.workload}, .time = {t, t, t}, .timer = "graph"});
    }
    return m;
  }

  int steps = 0, fails_at = 0;
  Seconds time;

 private:
  Gpu truth_;
};

Gpu slower_memory() {
  Gpu gpu = load_gpu("h200");
  set_constant(gpu, "stream.hbm_fraction", 0.7);
  set_constant(gpu, "gemm.start_us", 5);
  return gpu;
}

fs::path fresh_folder(const char* name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  return folder;
}

HereOptions options_for(StandIn& gpu, double seconds) {
  return {.budget = Seconds(seconds),
          .iterations = 3,
          .clock = [&gpu] { return gpu.time; },
          .date = "2026-11-24"};
}

TEST(SlowHere, FindsTheConstantsOfAGpuThatDiffersFromItsDescription) {
  StandIn gpu(slower_memory());
  const fs::path folder = fresh_folder("here-finds");
  const HereResult r = calibrate_here(load_gpu("h200"), folder, gpu, options_for(gpu, 180));
  EXPECT_LT(r.after.mean, 0.5 * r.before.mean);
  EXPECT_LT(r.after.mean, 0.02);
  EXPECT_GE(r.after.blocks, 3);
  EXPECT_EQ(r.check.blocks, r.after.blocks);
  EXPECT_FALSE(r.left_out.empty());  // three minutes are not enough for all
  // Constants of kernels that no step runs are left as they are.
  EXPECT_FALSE(r.fit.constants.contains("stream.concat_instructions"));
  EXPECT_TRUE(r.fit.constants.contains("gemm.start_us"));

  // The file is the described GPU's, but for its name, the constants and the check.
  const std::string shipped = read_input_file(data_dir() / "gpus" / "h200.toml");
  const std::string text = calibrated_file(shipped, "my-h200", r, "here", "2026-11-24");
  const fs::path path = fs::path(testing::TempDir()) / "my-h200.toml";
  std::ofstream(path) << text;
  const Gpu read = load_gpu(path.string());
  EXPECT_EQ(read.name, "my-h200");
  EXPECT_TRUE(read.calibrated);
  ASSERT_EQ(read.checks.size(), 1U);
  EXPECT_EQ(read.sm_count, load_gpu("h200").sm_count);
  const ConstantInfo* start = find_constant("gemm.start_us");
  EXPECT_NEAR(value_of(*start, read.constants), r.fit.constants.at("gemm.start_us"), 0.01);

  // What was measured is not measured again.
  const int before = gpu.steps;
  const HereResult again = calibrate_here(load_gpu("h200"), folder, gpu, options_for(gpu, 0));
  EXPECT_EQ(gpu.steps, before);
  EXPECT_EQ(again.after.mean, r.after.mean);
}

// A GPU that is described well: the fit finds no better constants. Its file still says how far off
// predictions are on this machine.
TEST(Here, AFileKeepsTheDescribedConstantsWhereTheFitIsWorse) {
  HereResult r;
  r.fit.constants["gemm.start_us"] = 9;
  r.before = {.blocks = 8, .mean = 0.031, .worst = 0.119};
  r.after = {.blocks = 8, .mean = 0.032, .worst = 0.119};
  r.check = {.measurements = "calibration-h200-here",
             .policies = {"coda"},
             .looked_at = {},
             .blocks = 8,
             .mean_error = 0.031,
             .worst_error = 0.119,
             .source = "blocks that no constant was fitted to",
             .date = "2026-11-27"};
  for (const char* name : {"h200", "h20"}) {
    SCOPED_TRACE(name);
    const std::string shipped =
        read_input_file(data_dir() / "gpus" / (std::string(name) + ".toml"));
    const fs::path path = fs::path(testing::TempDir()) / (std::string("my-") + name + ".toml");
    std::ofstream(path) << calibrated_file(shipped, "here", r, "a source", "2026-11-27");
    const Gpu read = load_gpu(path.string()), before = load_gpu(name);
    EXPECT_EQ(read.name, "here");
    EXPECT_EQ(read.calibrated, before.calibrated);
    ASSERT_EQ(read.checks.size(), 1U);
    EXPECT_DOUBLE_EQ(read.checks[0].mean_error, 0.031);
    for (const ConstantInfo& info : constant_table())
      EXPECT_EQ(value_of(info, read.constants), value_of(info, before.constants)) << info.name;
  }
}

TEST(Here, AStepThatFailsIsLeftOutUnlessItIsTheFirst) {
  StandIn gpu(load_gpu("h200"));
  gpu.fails_at = 1;
  EXPECT_THROW(
      calibrate_here(load_gpu("h200"), fresh_folder("here-first"), gpu, options_for(gpu, 600)),
      MissingError);
}

TEST(Here, RefusesTooLittleTimeAndAnotherGpusFolder) {
  StandIn gpu(load_gpu("h200"));
  const fs::path folder = fresh_folder("here-little");
  try {
    calibrate_here(load_gpu("h200"), folder, gpu, options_for(gpu, 60));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no time was left"));
    EXPECT_THAT(error.what(), HasSubstr("more minutes"));
  }
  try {
    calibrate_here(load_gpu("h100"), folder, gpu, options_for(gpu, 60));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("another GPU"));
  }
}

// Whatever the budget allows, there is something to fit to and something to check on, and no model
// with the same sizes is on both sides.
TEST(Here, EveryThirdStepOrSoIsKeptOut) {
  const std::vector<HereStep> steps = here_steps();
  std::set<std::string> seen;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_GT(steps[i].expected, Seconds());
    EXPECT_FALSE(steps[i].policies.empty());
    for (const HereStep& other : steps) {
      if (other.kept_out == steps[i].kept_out) continue;
      EXPECT_FALSE(other.model == steps[i].model &&
                   other.workload.rows() == steps[i].workload.rows());
    }
    EXPECT_TRUE(seen.insert(steps[i].what).second);
  }
  Seconds all;
  for (const HereStep& step : steps) all += step.expected;
  EXPECT_LT(all, Seconds(600));
}

}  // namespace
}  // namespace fuseline
