#include "sim/kernels/strided_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/block/estimate.h"
#include "sim/kernels/gemm_schedule.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

using testing::IsEmpty;

// All products, each once, at the distances that the batches claim.
void expect_covers(const std::vector<BatchOffsets>& offsets,
                   const std::vector<StridedBatch>& batches) {
  std::vector<int> times(offsets.size());
  for (const StridedBatch& b : batches) {
    for (std::int64_t i = 0; i < b.count; ++i) {
      const std::int64_t at = b.first + i * b.step;
      ASSERT_LT(at, std::ssize(offsets));
      ++times[static_cast<std::size_t>(at)];
      for (std::size_t k = 0; b.count > 1 && k < 3; ++k) {
        const auto value = [&](std::int64_t n) { return offsets[static_cast<std::size_t>(n)][k]; };
        EXPECT_EQ(value(at), value(b.first) + i * (value(b.first + b.step) - value(b.first)));
      }
    }
  }
  EXPECT_THAT(times, testing::Each(1));
}

// Q [B·T, H·d] by K [B·S, Hkv·d] into scores [B·H·T, S], as BatchOffsets.
std::vector<BatchOffsets> scores(std::int64_t sequences, std::int64_t heads, std::int64_t share) {
  std::vector<BatchOffsets> offsets;
  for (std::int64_t b = 0; b < sequences; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      offsets.push_back({b * 1000 + h * 8, b * 700 + h / share * 8, (b * heads + h) * 90});
  return offsets;
}

TEST(StridedBatches, HeadsOfASequenceAreOne) {
  EXPECT_EQ(strided_batches(scores(1, 12, 1)).size(), 1U);
  EXPECT_EQ(strided_batches(scores(3, 12, 1)).size(), 3U);
  expect_covers(scores(3, 12, 1), strided_batches(scores(3, 12, 1)));
}

TEST(StridedBatches, ManySequencesOfFewHeadsGoHeadByHead) {
  const auto batches = strided_batches(scores(9, 2, 1));
  EXPECT_EQ(batches.size(), 2U);
  expect_covers(scores(9, 2, 1), batches);
}

TEST(StridedBatches, HeadsThatShareAKeyGoByTheirPlaceInTheGroup) {
  const auto batches = strided_batches(scores(1, 32, 4));
  EXPECT_EQ(batches.size(), 4U);
  expect_covers(scores(1, 32, 4), batches);
  // All share one key: distance 0.
  EXPECT_EQ(strided_batches(scores(1, 16, 16)).size(), 1U);
}

TEST(StridedBatches, SingleAndIrregularProductsAreTaken) {
  const std::vector<BatchOffsets> one = {{5, 6, 7}};
  EXPECT_EQ(strided_batches(one).size(), 1U);
  const std::vector<BatchOffsets> irregular = {
      {0, 0, 0}, {1, 5, 2}, {4, 6, 9}, {7, 1, 1}, {9, 9, 9}};
  expect_covers(irregular, strided_batches(irregular));
  EXPECT_THAT(strided_batches({}), IsEmpty());
}

TEST(LibraryBatches, SequencesWithSharedKeysTakeALaunchForEachDistance) {
  // Each of two key heads has four query heads: a launch for each key head of each sequence.
  ModelConfig config = small_llama();
  config.H = 8;
  const Plan plan = make_plan("unfused", config, decode(3, 1, 500));
  const PlanEstimate e = simulate(plan, test_gpu(), Fidelity::hierarchy);
  for (const KernelEstimate& k : e.kernels) {
    const bool batched = k.name == "scores" || k.name == "context";
    EXPECT_EQ(k.launches, batched ? 6 : 1) << k.name;
  }
  EXPECT_EQ(e.launches, std::ssize(e.kernels) + 2 * 5);
}

TEST(LibraryBatches, NoWaveGoesOnBeyondALaunch) {
  const std::vector<StridedBatch> calls = {{0, 2, 3}, {1, 2, 2}};
  const GemmSchedule s = schedule_calls(calls, 64, 64, 64, {.m = 64, .n = 64, .k = 64}, 2, 1);
  std::vector<std::int64_t> batches;
  for (const GemmUnit& unit : s.units) batches.push_back(unit.batch);
  EXPECT_THAT(batches, testing::ElementsAre(0, 2, 4, 1, 3));
  std::vector<std::int64_t> ends;
  for (const UnitRange& wave : s.waves()) ends.push_back(wave.end);
  EXPECT_THAT(ends, testing::ElementsAre(2, 3, 5));
}

}  // namespace
}  // namespace fuseline
