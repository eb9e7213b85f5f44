// Rows of operands that do not begin at a line of L2, in our own mainloop.
#include <gtest/gtest.h>

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

// Measured on an H200 (cuda/bench/results/forty-h200.csv, a row that the constant was not fitted
// to): 152 x 7,512 x 14,216 takes 116.9 us in turned tiles of 80 rows. 8 columns fewer, whose rows
// begin at lines, are predicted as before.
TEST(OperandRows, OfOddLengthsTakeLonger) {
  const Gpu gpu = load_gpu("h200");
  GemmTile low = kTurnedSquare;
  low.m = 80;
  low.stages = 7;
  const double odd = simulated_us(own_product(152, 7512, 14216), low, gpu);
  const double even = simulated_us(own_product(152, 7512, 14208), low, gpu);
  EXPECT_GT(odd, 1.3 * even);
  EXPECT_NEAR(odd, 116.9, 0.2 * 116.9);
}

}  // namespace
}  // namespace fuseline
