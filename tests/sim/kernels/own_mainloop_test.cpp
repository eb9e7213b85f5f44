// What sets the pace of our own Hopper mainloop: requests of its copy engines, its ring of stages,
// how many multiprocessors work, and what of an epilogue shows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/own_mainloop.h"
#include "tests/sim/kernels/own_product.h"

namespace fuseline {
namespace {

using test::own_product;
using test::simulated_us;

double quick_us(const GemmProblem& problem, const GemmTile& tile) {
  return to_us(quick_gemm_time(problem, tile, load_gpu("h200")));
}

TEST(OwnMainloop, SendsARequestForEachRowAndTwoBetweenLines) {
  const GemmTile alone{.m = 128, .n = 192}, pair{.m = 128, .n = 192, .cluster_m = 2};
  const StepRequests even = step_requests(own_product(1024, 1536, 4096), alone);
  EXPECT_EQ(even.sent, 320);
  EXPECT_EQ(even.received, 320);
  // Each of two blocks asks for a half of the weights, and both get all.
  const StepRequests shared = step_requests(own_product(1024, 1536, 4096), pair);
  EXPECT_EQ(shared.sent, 128 + 96);
  EXPECT_EQ(shared.received, 320);
  // Seven of eight rows lie in two lines.
  EXPECT_EQ(step_requests(own_product(1024, 1536, 4104), alone).sent, 320 * 1.875);
  // Of a tile of 64 rows, no more than the product has come.
  EXPECT_EQ(step_requests(own_product(16, 1536, 4096), {.m = 64, .n = 128}).sent, 16 + 128);
}

TEST(OwnMainloop, AtLinesMuchIsAskedOnceMostOfAllWithoutACluster) {
  const Gpu gpu = load_gpu("h200");
  const GemmTile tile{.m = 128, .n = 128};
  const GemmProblem problem = own_product(1024, 1536, 1024);
  const double share = reaching_share(problem, tile, gpu);
  EXPECT_LT(share, 0.7);
  EXPECT_GT(share, 0.3);
  EXPECT_EQ(reaching_share(own_product(1024, 1536, 1032), tile, gpu), 1);
  const double of_pairs = reaching_share(problem, {.m = 128, .n = 128, .cluster_m = 2}, gpu);
  EXPECT_GT(of_pairs, share);
  EXPECT_LT(of_pairs, 0.95);
  EXPECT_EQ(reaching_share(problem, {.m = 64, .n = 128, .cluster_m = 2}, gpu), 1);
  EXPECT_EQ(reaching_share(problem, {.m = 128, .n = 128, .cluster_m = 4}, gpu), 1);
  EXPECT_EQ(reaching_share(problem, {.m = 64, .n = 128, .cluster_k = 2}, gpu), 1);
  // One tile high: each has weights of its own, and all have the same rows of x.
  const double low = reaching_share(own_product(128, 1536, 1024), tile, gpu);
  EXPECT_GT(low, share);
  EXPECT_LT(low, 0.75);
}

// 5,000 x 5,120 x 2,048 in tiles of 64 x 256 took 196 us on an H200 in groups of one and 137 us in
// groups of eight, and 2,048 x 12,288 x 4,096 in tiles of 64 x 192 605 and 282 us.
TEST(OwnMainloop, GroupsOfOneTileAskForWeightsAgain) {
  const auto in_groups_of = [](GemmProblem problem, const GemmTile& tile, std::int64_t group) {
    problem.ran_group = group;
    return quick_us(problem, tile);
  };
  const GemmTile wide{.m = 64, .n = 256, .stages = 4}, narrow{.m = 64, .n = 192, .stages = 6};
  EXPECT_NEAR(in_groups_of(own_product(5000, 5120, 2048), wide, 8), 137, 0.1 * 137);
  EXPECT_GT(in_groups_of(own_product(5000, 5120, 2048), wide, 1), 1.1 * 137);
  EXPECT_NEAR(in_groups_of(own_product(2048, 12288, 4096), narrow, 8), 282, 0.1 * 282);
  EXPECT_GT(in_groups_of(own_product(2048, 12288, 4096), narrow, 1), 1.2 * 282);
}

// As cuda/kernels/sm90/layout.cuh finds them.
TEST(OwnMainloop, HasTheStagesThatFit) {
  const Gpu gpu = load_gpu("h200");
  const GemmProblem many = own_product(4096, 4096, 4096);
  const auto stages = [&](const GemmTile& tile) { return ring_stages(many, tile, gpu); };
  EXPECT_EQ(stages({.m = 128, .n = 256, .cluster_m = 2}), 4);
  EXPECT_EQ(stages({.m = 128, .n = 64}), 8);
  EXPECT_EQ(stages({.m = 64, .n = 64}), 12);
  EXPECT_EQ(stages({.m = 64, .n = 192}), 6);
  // Of 64 rows, seven with 16 loaded rows would fit: two consumers in turns take an even number.
  EXPECT_EQ(ring_stages(own_product(16, 4096, 4096), {.m = 64, .n = 192}, gpu), 6);
  // A turned tile gives up store buffers for a fourth stage.
  EXPECT_EQ(stages({.m = 288, .n = 128, .cluster_n = 2}), 4);
  EXPECT_EQ(stages({.m = 304, .n = 128, .cluster_n = 2}), 3);
}

TEST(OwnMainloop, IsBusyWhereItHasTiles) {
  const Gpu gpu = load_gpu("h200");
  ASSERT_EQ(gpu.sm_count, 132);
  const GemmTile tile{.m = 128, .n = 128};
  EXPECT_DOUBLE_EQ(busy_share(own_product(128 * 3, 128 * 11, 4096), tile, gpu), 0.25);
  EXPECT_DOUBLE_EQ(busy_share(own_product(128 * 12, 128 * 11, 4096), tile, gpu), 1);
  // 165 tiles are a round and a quarter. Cut into four parts the last ones are a full round of
  // quarters.
  EXPECT_DOUBLE_EQ(busy_share(own_product(128 * 15, 128 * 11, 4096), tile, gpu), 165.0 / 264);
  EXPECT_DOUBLE_EQ(
      busy_share(own_product(128 * 15, 128 * 11, 4096), {.m = 128, .n = 128, .tail_parts = 4}, gpu),
      165.0 / 264);
}

// Six thread blocks on 132 multiprocessors take 568 ns a step of K in a tile of 256 x 128 on an
// H200, 0.985 of the datasheet's rate.
TEST(OwnMainloop, MultipliesFasterWhereOthersRest) {
  const Gpu gpu = load_gpu("h200");
  Gpu without = gpu;
  without.constants.gemm.idle_tensor_gain = 0;
  const GemmTile tile{.m = 256, .n = 128, .stages = 4, .cluster_n = 2};
  const GemmProblem few = own_product(120, 696, 27904), many = own_product(8192, 8448, 4096);
  EXPECT_LT(1.1 * quick_gemm_time(few, tile, gpu), quick_gemm_time(few, tile, without));
  EXPECT_LT(quick_gemm_time(many, tile, without), 1.03 * quick_gemm_time(many, tile, gpu));
  EXPECT_LT(simulated_us(few, tile, gpu) * 1.1, simulated_us(few, tile, without));
}

// Where one multiprocessor asks for two requests a row, it waits for its copy engine, however much
// L2 could give. Measured on an H200: 35 tiles of 64 x 128 take 302 ns a step of 192 rows that lie
// between lines, and 28 take 148 ns a step of such that begin at them.
TEST(OwnMainloop, WaitsForTheRequestsOfOneMultiprocessor) {
  const GemmTile tile{.m = 64, .n = 128, .stages = 8};
  const auto step_ns = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const GemmProblem near = own_product(m, n, k), far = own_product(m, n, k + 64 * 64);
    return (quick_us(far, tile) - quick_us(near, tile)) / 64 * 1e3;
  };
  EXPECT_NEAR(step_ns(392, 632, 10568), 302, 0.15 * 302);
  EXPECT_NEAR(step_ns(128, 1728, 3264), 148, 0.2 * 148);
}

// With three stages a step waits for the latency: 304 x 128 multiplies for 675 ns and took 748 ns
// on an H200 where rows lie between lines.
TEST(OwnMainloop, AShallowRingShowsTheLatency) {
  const Gpu gpu = load_gpu("h200");
  Gpu near = gpu;
  near.constants.gemm.stage_latency = Seconds();
  const GemmProblem problem = own_product(392, 632, 10568);
  const GemmTile shallow{.m = 304, .n = 128, .stages = 3, .cluster_n = 2};
  const GemmTile deep{.m = 160, .n = 128, .stages = 5, .cluster_n = 2};
  const auto gain = [&](const GemmTile& tile) {
    return quick_gemm_time(problem, tile, gpu) / quick_gemm_time(problem, tile, near);
  };
  EXPECT_GT(gain(shallow), 1.05);
  EXPECT_LT(gain(deep), gain(shallow));
}

// Of two consumers in turns one multiplies while the other stores, so that an epilogue costs least
// in tiles of 64 rows; the last tile's shows in both.
TEST(OwnMainloop, EpiloguesHideBehindTheNextTile) {
  const Gpu gpu = load_gpu("h200");
  Gpu slow = gpu;
  slow.constants.gemm.exposed_epilogue_bytes_per_cycle /= 1.5;
  const GemmProblem problem = own_product(64 * 132, 192 * 8, 1280);
  const auto added = [&](const GemmTile& tile) {
    return quick_gemm_time(problem, tile, slow) - quick_gemm_time(problem, tile, gpu);
  };
  const GemmTile in_turns{.m = 64, .n = 192, .stages = 6},
      together{.m = 128, .n = 192, .stages = 5};
  EXPECT_LT(3 * added(in_turns), added(together));
  EXPECT_GT(added(in_turns), Seconds());
}

// A few rows that a tile has and its matrix has not cost no more than their zeros take to come, and
// each row more costs something: nothing jumps where the first one is missing.
TEST(OwnMainloop, ZerosAddNoMoreThanTheyTake) {
  const Gpu gpu = load_gpu("h200");
  const GemmTile tile{.m = 128, .n = 128, .stages = 6, .cluster_m = 2};
  const double row_ns =
      64 * 2 / gpu.constants.gemm.absent_bytes_per_cycle / gpu.sm_clock.value() * 1e9;
  constexpr std::int64_t kDepth = 4096, kFull = 1408;
  const double rounds = std::ceil(kFull / 128.0 * 4096 / 128 / static_cast<double>(gpu.sm_count));
  const double full = quick_us(own_product(kFull, 4096, kDepth), tile);
  double before = full;
  for (const std::int64_t absent : {1, 8, 24, 64, 104}) {
    const double us = quick_us(own_product(kFull - absent, 4096, kDepth), tile);
    EXPECT_GT(us, 0.999 * before) << absent;
    EXPECT_LT(us, full + rounds * kDepth / 64.0 * static_cast<double>(absent) * row_ns * 1e-3)
        << absent;
    before = us;
  }
  EXPECT_GT(before, 1.1 * full);
}

// Where HBM takes longest, what is on the chip shows more than a part of the chip would: products
// that read 235 MB of weights took 5 % longer on H100s than the bytes alone.
TEST(OwnMainloop, HbmHidesLessThanThePartsOfTheChip) {
  const Gpu gpu = load_gpu("h100-sxm");
  Gpu perfect = gpu;
  perfect.constants.gemm.own_overlap_exponent = 100;
  const GemmProblem problem = own_product(128, 28672, 4096);
  const GemmTile tile{.m = 128, .n = 256, .stages = 4};
  const double hbm_us = simulated_us(problem, tile, perfect);
  perfect.constants.gemm.overlap_exponent = 100;
  EXPECT_GT(hbm_us, 1.01 * simulated_us(problem, tile, perfect));
  EXPECT_GE(simulated_us(problem, tile, gpu), hbm_us);
}

}  // namespace
}  // namespace fuseline
