// Sums down columns: their grid, and the time that follows from it.
#include "sim/kernels/column_threads.h"

#include <gtest/gtest.h>

#include "sim/kernels/stream_kernel.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

// One matrix is loaded; `grid` says how threads share it.
StreamKernel column_sum(std::int64_t rows, std::int64_t cols, const ColumnThreads& grid,
                        const ColumnSums& sums) {
  StreamKernel kernel;
  kernel.implementation = Implementation::resident_row;
  kernel.rows = rows;
  kernel.cols = cols;
  kernel.columns = grid;
  kernel.column_sums = sums;
  kernel.column_terms = 1;
  kernel.instructions = test_gpu().constants.stream.column_instructions;
  Stream stream;
  stream.part.matrix = {1, rows, cols, 2};
  stream.part.rows = rows;
  stream.part.cols = cols;
  kernel.streams.push_back(stream);
  return kernel;
}

double warm_us(const StreamKernel& kernel, const Gpu& gpu) {
  L2Cache cache(Bytes(34 << 20));
  simulate_stream(kernel, gpu, cache);
  return to_us(simulate_stream(kernel, gpu, cache).work);
}

TEST(ColumnThreads, StepsAndBlocksOfAGrid) {
  const ColumnThreads grid{.block_rows = 1200, .lanes = 2, .units = 2, .threads = 1024};
  EXPECT_EQ(column_steps(grid), 2) << "512 threads down, two rows each";
  EXPECT_EQ(column_blocks(grid, 1200, 1280), 80);
  EXPECT_EQ(column_blocks(grid, 2400, 1280), 160) << "two sequences";
  const ColumnThreads partials{
      .block_rows = 300, .inner_rows = 128, .lanes = 16, .units = 4, .threads = 256};
  EXPECT_EQ(column_steps(partials), 5) << "two steps of 64 rows, twice, and one of 44 rows";
}

TEST(ColumnThreads, TimeGrowsWithRowsAtOneGrid) {
  const Gpu gpu = test_gpu();
  double before = 0;
  for (const std::int64_t rows : {1536, 4608, 9216, 18432}) {
    const ColumnThreads grid{.block_rows = rows, .lanes = 16, .units = 1, .threads = 512};
    const double us = warm_us(column_sum(rows, 256, grid, {.vectors = 1}), gpu);
    EXPECT_GT(us, before) << rows;
    before = us;
  }
}

TEST(ColumnThreads, TwoSequencesTakeLongerThanOne) {
  // 96 thread blocks of 1,024 threads have a multiprocessor each; 192 come in two waves.
  const Gpu gpu = test_gpu();
  const ColumnThreads grid{.block_rows = 154, .lanes = 2, .units = 4, .threads = 1024};
  const double one = warm_us(column_sum(154, 1536, grid, {.rows = 1}), gpu);
  const double two = warm_us(column_sum(308, 1536, grid, {.rows = 1}), gpu);
  EXPECT_NEAR(two, 2 * one, 0.01 * one);
}

TEST(ColumnThreads, ShortSumsTakeWhatWasMeasured) {
  // Measured on an H100, kernels of what L2 holds. The constants were fitted to the first two
  // (h100-train-fuseline: GPT-2 large's db_norm1 and SD3's dshift_text_modulate1) and not to the
  // others (h100-kernels-third: GPT-2 large's db_norm1 and BERT's db_oproj).
  constexpr double kLaunch = 1.36;
  const Gpu gpu = test_gpu();
  const auto us = [&](std::int64_t rows, std::int64_t cols, const ColumnSums& sums) {
    const ColumnThreads grid{.block_rows = rows, .lanes = 2, .units = 4, .threads = 1024};
    return warm_us(column_sum(rows, cols, grid, sums), gpu) + kLaunch;
  };
  EXPECT_NEAR(us(1200, 1280, {.vectors = 1}), 4.29, 0.15 * 4.29);
  EXPECT_NEAR(us(154, 1536, {.rows = 1}), 6.14, 0.15 * 6.14);
  EXPECT_NEAR(us(1024, 1280, {.vectors = 1}), 4.16, 0.15 * 4.16);
  EXPECT_NEAR(us(600, 1024, {.vectors = 1}), 3.14, 0.25 * 3.14);
}

}  // namespace
}  // namespace fuseline
