// What holds for every shape: no estimate beats its limits, more work takes no less time with the
// same kernels, a better GPU is not slower. LongProperties judges 20,000 random blocks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tests/sim/measured_falls.h"
#include "tests/sim/property_run.h"

namespace fuseline {
namespace {

// What L2 holds moves a little from size to size: in 1,500 blocks 12 comparisons with the same
// kernels broke by up to 0.03 % (before the mechanisms were mended 270, by up to 24 %).
constexpr double kOfContents = 5e-4;
// Two sequences of 3 tokens in training: 9 of 216 MB less move with twice the L2, and 38 MB of
// writes move from kernels of products to two that HBM holds up. The block takes 3.2 % longer.
constexpr double kOfLaterWrites = 0.05;
// The same product with rows where its last tile had zeros: FullerTiles has the measured one.
constexpr double kOfFullerTiles = 0.29;

void expect_properties(std::int64_t cases, std::uint64_t seed) {
  std::ofstream details;
  if (const char* path = std::getenv("FUSELINE_PROPERTY_BREAKS")) details.open(path);
  PropertyRun run(seed, details.is_open() ? &details : nullptr);
  run.run(cases);
  // The library chooses by a quick estimate, and takes other kernels for odd sizes. Measured tables
  // fall where it does.
  const MeasuredFall choice = greatest_measured_fall();
  std::cout << "with other kernels may fall as measured: " << choice.text << "\n";
  std::int64_t compared = 0;
  for (const auto& [what, count] : run.counts()) {
    compared += count.compared;
    std::cout << what << ": " << count.broken << " of " << count.compared << ", worst "
              << 100 * count.worst << " %\n";
    const double most = what.ends_with("with other kernels")      ? choice.share
                        : what.starts_with("twice the L2 brings") ? kOfLaterWrites
                        : what.starts_with("a product with")      ? kOfFullerTiles
                        : what.ends_with("limit")                 ? PropertyRun::kRounding
                                                                  : kOfContents;
    EXPECT_LE(count.worst, most) << what << ": " << count.where;
  }
  EXPECT_GT(run.judged(), cases * 9 / 10);
  EXPECT_GT(compared, cases);  // several properties a block
}

// Found by the long run: one head of one sequence of 482 tokens was taken for a matrix whose rows
// are no multiple of 16 bytes, two sequences for padded ones, and so were 24 % faster.
TEST(Properties, AttentionOfOneHeadHasPaddedRowsToo) {
  ModelConfig model = small_gpt();
  model.D = 80;
  model.F = 2688;
  model.H = model.Hkv = 1;
  model.d = 112;
  const Gpu gpu = load_gpu("h200");
  const auto predicted = [&](std::int64_t batch) {
    Workload work = forward(batch, 482);
    work.phase = Phase::train;
    return simulate(make_plan("unfused", model, work, plan_target(gpu)), gpu, Fidelity::hierarchy);
  };
  EXPECT_LT(predicted(1).time, predicted(2).time);
}

// The allowance for another choice is what the tables show: 2 rows of 1600 x 1600 took 6.354 us,
// and 16 rows 4.989 us.
TEST(Properties, TheGreatestFallIsTheMeasuredOne) {
  EXPECT_NEAR(greatest_measured_fall().share, 1 - 4.989 / 6.354, 1e-9);
}

// TensorRT-LLM's product with a gate is no library's: it waits for the zeros in its last tile, and
// takes less time where fewer rows are lacking. Products of the library do not.
TEST(Properties, FullerTilesAreOfOurOwnProducts) {
  ModelConfig model = small_llama();
  model.D = 160;
  model.F = 952;
  model.H = 7;
  model.Hkv = 1;
  model.d = 24;
  const Gpu gpu = load_gpu("b200");
  const auto plan = [&](const char* policy) {
    return make_plan(policy, model, forward(6, 511), plan_target(gpu));
  };
  EXPECT_TRUE(own_products(plan("tensorrt-llm")).contains("gate_up"));
  EXPECT_FALSE(own_products(plan("tensorrt-llm")).contains("qkv"));
  EXPECT_FALSE(own_products(plan("per-operator")).contains("gate_up"));
}

TEST(Properties, HoldForSomeShapes) { expect_properties(120, 1); }
// FUSELINE_PROPERTY_SEED=N takes other blocks.
TEST(LongProperties, HoldForManyShapes) {
  const char* seed = std::getenv("FUSELINE_PROPERTY_SEED");
  expect_properties(20'000, seed == nullptr ? 2 : std::strtoull(seed, nullptr, 10));
}

}  // namespace
}  // namespace fuseline
