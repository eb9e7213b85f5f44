// Rows of operands that do not begin at a line of L2, in our own mainloop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_model.h"
#include "sim/kernels/operand_rows.h"
#include "tests/sim/kernels/own_product.h"

namespace fuseline {
namespace {

using test::own_product;
using test::simulated_us;

constexpr GemmTile kTurnedSquare{
    .m = 128, .n = 128, .k = 64, .stages = 6, .cluster_m = 1, .cluster_n = 2};

TEST(OperandRows, LieInTwoLinesWhereTheirLengthIsNoMultipleOfOne) {
  const Gpu gpu = load_gpu("h200");
  const auto share = [&](std::int64_t k) {
    return crossing_rows(own_product(616, 9688, k), kTurnedSquare, gpu);
  };
  EXPECT_EQ(share(3264), 0);
  EXPECT_EQ(share(3264 + 32), 0.5);    // every other row begins at a line
  EXPECT_EQ(share(3264 + 16), 0.75);   // one of four
  EXPECT_EQ(share(3264 + 8), 0.875);   // one of eight
  EXPECT_EQ(share(3264 + 24), 0.875);  // one of eight
}

TEST(OperandRows, AreAsLongAsTheStoredMatrixIsWide) {
  const Gpu gpu = load_gpu("h200");
  GemmProblem problem = own_product(512, 4104, 3264);
  // As the gradient of an input takes its weights: [k, n].
  problem.b.transposed = true;
  problem.b.matrix.rows = 3264;
  problem.b.matrix.cols = 4104;
  const GemmTile tile{.m = 128, .n = 256, .stages = 4, .cluster_m = 2};
  // 128 rows of a, and of the 256 of b the half that a block of the two asks for.
  EXPECT_EQ(crossing_rows(problem, tile, gpu), 0.875 / 2);
}

TEST(OperandRows, CostNothingWhereTheLibraryOrPlainLoadsTakeThem) {
  GemmProblem library = own_product(616, 9688, 3272);
  library.library = true;
  EXPECT_EQ(crossing_rows(library, kTurnedSquare, load_gpu("h200")), 0);
  EXPECT_EQ(crossing_rows(own_product(616, 9688, 3272), kTurnedSquare, load_gpu("a100-sxm-80gb")),
            0);
}

// Measured on an H100 (cuda/bench/results/promotion-h100.csv, a row that the constant was not
// fitted to): 1,624 x 21,192 x 3,880 takes 376.4 us in turned tiles of 272 rows. 40 columns fewer,
// whose rows begin at lines, are predicted as before.
TEST(OperandRows, OfOddLengthsTakeLonger) {
  const Gpu gpu = load_gpu("h100-sxm");
  GemmTile high = kTurnedSquare;
  high.m = 272;
  high.stages = 4;
  const double odd = simulated_us(own_product(1624, 21192, 3880), high, gpu);
  const double even = simulated_us(own_product(1624, 21192, 3840), high, gpu);
  EXPECT_GT(odd, 1.05 * even);
  EXPECT_NEAR(odd, 376.4, 0.1 * 376.4);
}

// Four blocks that share a panel ask for fewer rows, which pays where a row takes two requests. The
// best of 2,008 x 2,584 x 2,472 on the same H100 is such a tile.
TEST(OperandRows, BetweenLinesAreSharedAmongFourWhereThatIsFaster) {
  const Gpu gpu = load_gpu("h100-sxm");
  const auto shared = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    const GemmTile tile = choose_tile(own_product(m, n, k), gpu);
    return std::max(tile.cluster_m, tile.cluster_n);
  };
  EXPECT_EQ(shared(2008, 2584, 2472), 4);
  EXPECT_EQ(shared(280, 3816, 4392), 4);
  for (const std::int64_t m : {88, 280, 704, 2008, 6584})
    for (const std::int64_t n : {704, 2560, 9472})
      for (const std::int64_t k : {512, 2496, 14336})
        EXPECT_LE(shared(m, n, k), 2) << m << " x " << n << " x " << k;
  // Four tiles above each other there are not.
  GemmProblem low = own_product(88, 632, 10568);
  EXPECT_LE(choose_tile(low, gpu).cluster_m, 2);
}

}  // namespace
}  // namespace fuseline
