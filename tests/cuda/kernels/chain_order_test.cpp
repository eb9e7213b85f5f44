// What the lanes of a chain's warp load is multiplied right: mma.sync.m16n8k16 by its definition
// (PTX ISA 8.5, fragments of m16n8k16 with .bf16), on the CPU.
#include "cuda/kernels/chain_order.cuh"

#include <gtest/gtest.h>

#include <array>

namespace fuseline::gpu::chain_order {
namespace {

// Register r of a (and of b) holds k = column(lane, r, e) and the next one, of row row_a(lane, r).
int row_a(int lane, int r) { return lane / 4 + 8 * (r % 2); }
int column_a(int lane, int r) { return lane % 4 * 2 + 8 * (r / 2); }
int column_b(int lane, int r) { return lane % 4 * 2 + 8 * r; }

using Word = std::array<int, 2>;

TEST(ChainOrder, TwoInstructionsSumThirtyTwoColumns) {
  const auto weight = [](int row, int col) { return 1 + row * 37 + col * 5 % 11; };
  const auto x = [](int row, int col) { return 3 + row * 7 + col * col % 13; };
  int sums[tile_rows][most_rows] = {};
  for (int i = 0; i < 2; ++i) {
    // The operands of instruction i as matrices [16, 16] and [8, 16], from the lanes' registers.
    int a[16][16] = {}, b[8][16] = {};
    for (int lane = 0; lane < 32; ++lane) {
      for (int w = 0; w < 4; ++w) {
        if (instruction(w) != i) continue;
        const int col = first_column(lane) + 2 * w;
        for (int half = 0; half < 2; ++half) {
          const int row = weight_row(lane, half), r = weight_register(w, half);
          EXPECT_EQ(row_a(lane, r), row) << "the instruction's row";
          for (int e = 0; e < 2; ++e)
            a[row_a(lane, r)][column_a(lane, r) + e] = weight(row, col + e);
        }
        for (int e = 0; e < 2; ++e)
          b[lane / 4][column_b(lane, x_register(w)) + e] = x(x_row(lane), col + e);
      }
    }
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n)
        for (int k = 0; k < 16; ++k) sums[m][n] += a[m][k] * b[n][k];
  }
  for (int m = 0; m < tile_rows; ++m) {
    for (int n = 0; n < most_rows; ++n) {
      int right = 0;
      for (int k = 0; k < step_columns; ++k) right += weight(m, k) * x(n, k);
      EXPECT_EQ(sums[m][n], right) << m << ", " << n;
    }
  }
}

TEST(ChainOrder, EverySumHasOneLane) {
  int seen[tile_rows][most_rows] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) ++seen[sum_weight_row(lane, i)][sum_x_row(lane, i)];
  for (const auto& row : seen)
    for (const int count : row) EXPECT_EQ(count, 1);
}

// Four lanes load 64 bytes of a row behind each other, and no element is loaded twice.
TEST(ChainOrder, EveryElementIsLoadedOnce) {
  int seen[tile_rows][step_columns] = {};
  for (int lane = 0; lane < 32; ++lane)
    for (int half = 0; half < 2; ++half)
      for (int c = 0; c < 8; ++c) ++seen[weight_row(lane, half)][first_column(lane) + c];
  for (const auto& row : seen)
    for (const int count : row) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace fuseline::gpu::chain_order
