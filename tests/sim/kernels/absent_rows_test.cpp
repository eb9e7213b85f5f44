// Rows that a tile of our own mainloop has and its matrix has not, and the clusters that fit.
#include <gtest/gtest.h>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_model.h"
#include "sim/kernels/gemm_schedule.h"
#include "sim/kernels/gemm_time.h"
#include "tests/sim/kernels/own_product.h"

namespace fuseline {
namespace {

using test::own_product;
using test::simulated_us;

// Zeros hold up the data behind them. Measured on an H100: 50.9 us in tiles of 128 x 128, where
// those of 64 rows take about as long as HBM needs.
TEST(AbsentRows, CostTimeWhereTheRowsAreFew) {
  const Gpu gpu = load_gpu("h100-sxm");
  const GemmProblem problem = own_product(12, 12288, 4096);
  const GemmTile high{.m = 128, .n = 128, .stages = 6}, low{.m = 64, .n = 128, .stages = 8};
  EXPECT_NEAR(to_us(quick_gemm_time(problem, high, gpu)), 50.9, 0.12 * 50.9);
  EXPECT_LT(1.15 * quick_gemm_time(problem, low, gpu), quick_gemm_time(problem, high, gpu));
  EXPECT_EQ(choose_tile(problem, gpu).m, 64);
  // As many rows as there are: nothing is missing.
  EXPECT_LT(quick_gemm_time(own_product(128, 12288, 4096), high, gpu),
            quick_gemm_time(problem, high, gpu));
}

// A tile of 128 x 256 computes longer than its panel takes to come, zeros and all. Measured on
// H100s: gate_up of LLaMA-3-8B, 28,672 x 4,096, takes 84.7 to 87.7 us in such tiles with 1 to 20
// rows.
TEST(AbsentRows, HideBehindTensorCoresThatTakeLonger) {
  const Gpu gpu = load_gpu("h100-sxm");
  Gpu slow = gpu;
  slow.constants.gemm.absent_bytes_per_cycle *= 0.9;
  const GemmTile wide{.m = 128, .n = 256, .stages = 4}, square{.m = 128, .n = 128, .stages = 6};
  for (const std::int64_t rows : {1, 6, 20}) {
    const GemmProblem problem = own_product(rows, 28672, 4096);
    EXPECT_EQ(simulated_us(problem, wide, slow), simulated_us(problem, wide, gpu)) << rows;
    EXPECT_GT(simulated_us(problem, square, slow), simulated_us(problem, square, gpu)) << rows;
    EXPECT_EQ(choose_tile(problem, gpu).m, 64) << rows;
    EXPECT_NEAR(simulated_us(problem, wide, gpu), 86.2, 0.04 * 86.2) << rows;
  }
}

// Measured on an H200: 1,304 rows of 4,096 x 4,096 take 91.2 us in tiles of 128 x 128, the last of
// which have 24 rows, and 71.6 us in tiles of 128 x 256 in as many rounds of work.
TEST(AbsentRows, OfTheLastTileHoldUpTheRounds) {
  const Gpu gpu = load_gpu("h200");
  const GemmTile square{.m = 128, .n = 128, .stages = 6, .cluster_m = 2};
  const double ragged = simulated_us(own_product(1304, 4096, 4096), square, gpu);
  const double full = simulated_us(own_product(1408, 4096, 4096), square, gpu);
  EXPECT_GT(ragged, 1.1 * full);  // measured: 1.3
  EXPECT_NEAR(ragged, 91.2, 0.15 * 91.2);
}

TEST(AbsentRows, AreThoseOfTheLastTile) {
  const GemmProblem problem = own_product(1304, 4096, 4096);
  const GemmTile high{.m = 128, .n = 128}, low{.m = 64, .n = 64};
  EXPECT_EQ(absent_rows(problem, high, 1304), 104);
  EXPECT_EQ(absent_rows(problem, high, 256), 0);
  EXPECT_EQ(absent_rows(problem, {.m = 144, .n = 256, .cluster_n = 2}, 1304), 0) << "turned";
  EXPECT_EQ(absent_rows(problem, low, 1304), 0) << "low tiles load little that is not there";
  // Behind the rows of a group lie those of the next.
  GemmProblem grouped = problem;
  grouped.groups = {1000, 304};
  EXPECT_EQ(absent_rows(grouped, high, 304), 0);
  // Of the vendor's kernels only times are known, and their constants were fitted without this.
  GemmProblem library = problem;
  library.library = true;
  EXPECT_EQ(absent_rows(library, high, 1304), 0);
}

// 40 clusters of three are not resident together on an H100 or an H200: measured 25.7 us for one
// row of 5,120 x 5,120 where clusters of two take 22.2. 32 are: 4,096 x 4,096.
TEST(ClustersOfThree, AreFewerThanTheMultiprocessorsWouldAllow) {
  for (const char* name : {"h100-sxm", "h200"}) {
    const Gpu gpu = load_gpu(name);
    const GemmTile three{.m = 64, .n = 128, .stages = 4, .cluster_k = 3};
    EXPECT_LT(blocks_at_once(three, gpu), 3 * 40) << name;
    EXPECT_GE(blocks_at_once(three, gpu), 3 * 32) << name;
    EXPECT_EQ(blocks_at_once(three, gpu) % 3, 0) << name;
    EXPECT_NE(choose_tile(own_product(7, 5120, 5120), gpu).cluster_k, 3) << name;
    EXPECT_NE(choose_tile(own_product(7, 5120, 13824), gpu).cluster_k, 3) << name;
  }
}

}  // namespace
}  // namespace fuseline
