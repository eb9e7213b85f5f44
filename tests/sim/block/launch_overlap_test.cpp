// Launches that overlap: which plans gain by it, and by how much.
#include "sim/block/launch_overlap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"

namespace fuseline {
namespace {

Workload of(Phase phase, std::int64_t batch, std::int64_t tokens) {
  Workload w;
  w.phase = phase;
  w.batch = batch;
  w.seq = phase == Phase::decode ? 1 : tokens;
  if (phase == Phase::decode) w.context = tokens;
  return w;
}

Plan plan_of(const std::string& policy, const std::string& model, const Workload& workload,
             const Gpu& gpu) {
  return make_plan(policy, load_model(model), workload, plan_target(gpu));
}

TEST(LaunchOverlap, PlansOfFewRowsOfOurKernelsGain) {
  const Gpu gpu = load_gpu("h200");
  const auto overlap = [&](const std::string& policy, const std::string& model, const Workload& w) {
    return launches_overlap(plan_of(policy, model, w, gpu), gpu);
  };
  for (const char* policy : {"coda", "per-operator", "whole-block"})
    EXPECT_TRUE(overlap(policy, "llama2-7b", of(Phase::decode, 1, 2048))) << policy;
  EXPECT_TRUE(overlap("coda", "llama2-7b", of(Phase::decode, 128, 500)));
  EXPECT_FALSE(overlap("coda", "llama2-7b", of(Phase::decode, 129, 500)));
  EXPECT_TRUE(overlap("coda", "llama2-7b", of(Phase::forward, 1, 100)));
  EXPECT_FALSE(overlap("coda", "llama2-7b", of(Phase::forward, 1, 2048)));
  EXPECT_FALSE(overlap("coda", "tinyllama", of(Phase::train, 1, 2048)));
  // 40 tokens of eight experts each are 320 rows of 128 groups.
  EXPECT_TRUE(overlap("coda", "qwen3-30b-a3b", of(Phase::decode, 40, 1500)));
  // A framework's kernels do not wait.
  EXPECT_FALSE(overlap("eager", "llama2-7b", of(Phase::decode, 1, 2048)));
  EXPECT_FALSE(overlap("torch-compile", "llama2-7b", of(Phase::decode, 1, 2048)));
  const Gpu older = load_gpu("a100");
  EXPECT_FALSE(
      launches_overlap(plan_of("coda", "llama2-7b", of(Phase::decode, 1, 2048), older), older));
}

TEST(LaunchOverlap, EachOfOurKernelsTakesSoMuchLess) {
  const Gpu gpu = load_gpu("h200");
  const auto time = [&](const Plan& plan, Launching launching) {
    return simulate(plan, gpu, Fidelity::hierarchy, {.launching = launching}).time;
  };
  const Plan few = plan_of("coda", "llama2-7b", of(Phase::decode, 1, 2048), gpu);
  const Seconds saved = time(few, Launching::graph) - time(few, Launching::overlap);
  EXPECT_NEAR(to_us(saved),
              to_us(static_cast<double>(few.kernels.size()) * gpu.constants.launch.overlap), 1e-6);
  const Plan many = plan_of("coda", "llama2-7b", of(Phase::forward, 1, 2048), gpu);
  EXPECT_EQ(time(many, Launching::graph), time(many, Launching::overlap));
  // A kernel takes at least half of its time.
  Gpu wild = gpu;
  wild.constants.launch.overlap = Seconds(1);
  const std::vector<KernelEstimate> before = simulate(few, gpu, Fidelity::hierarchy).kernels;
  std::vector<KernelEstimate> kernels = before;
  overlap_launches(few, wild, kernels);
  for (std::size_t i = 0; i < kernels.size(); ++i)
    EXPECT_EQ(kernels[i].time, 0.5 * before[i].time) << kernels[i].name;
}

}  // namespace
}  // namespace fuseline
