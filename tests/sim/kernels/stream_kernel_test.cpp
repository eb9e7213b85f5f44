#include "sim/kernels/stream_kernel.h"

#include <gtest/gtest.h>

#include "model/primitives/sort_places.h"
#include "sim/kernels/chained_steps.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

// out = f(in...): `inputs` matrices of [rows, cols] in, one out.
StreamKernel element_wise(std::int64_t rows, std::int64_t cols, int inputs,
                          Implementation implementation = Implementation::vectorized,
                          double instructions = 8) {
  StreamKernel kernel;
  kernel.implementation = implementation;
  kernel.rows = rows;
  kernel.cols = cols;
  kernel.instructions = instructions;
  for (int i = 0; i <= inputs; ++i) {
    Stream stream;
    stream.part.matrix = {static_cast<std::uint32_t>(i + 1), rows, cols, 2};
    stream.part.rows = rows;
    stream.part.cols = cols;
    stream.store = i == inputs;
    kernel.streams.push_back(stream);
  }
  return kernel;
}

double work_us(const StreamKernel& kernel, const Gpu& gpu) {
  L2Cache cache(Bytes(34 << 20));
  return to_us(simulate_stream(kernel, gpu, cache).work);
}

TEST(StreamKernel, ColdStreamsReadEverythingOnceAndWriteWhatTheCacheCannotHold) {
  const Gpu gpu = test_gpu();
  const Bytes capacity(34 << 20);
  L2Cache cache(capacity);
  const StreamEstimate e = simulate_stream(element_wise(16384, 4096, 2), gpu, cache);
  const Bytes matrix(16384 * 4096 * 2);
  EXPECT_EQ(e.hbm.read, 2 * matrix);
  EXPECT_GE(e.hbm.write, matrix - capacity);
  EXPECT_LT(e.hbm.write, matrix);
  EXPECT_EQ(e.l2, Bytes(3 * matrix.value() * 3 / 2));  // half of it crosses between two partitions
  EXPECT_EQ(e.bound, Bound::hbm);
}

TEST(StreamKernel, AConsumerFindsASmallTensorInL2) {
  const Gpu gpu = test_gpu();
  L2Cache cache(Bytes(34 << 20));
  StreamKernel producer = element_wise(512, 4096, 1);
  StreamKernel consumer = element_wise(512, 4096, 1);
  consumer.streams[0].part.matrix.tensor = 2;  // what the producer stored
  consumer.streams[1].part.matrix.tensor = 9;
  const StreamEstimate cold = simulate_stream(producer, gpu, cache);
  const StreamEstimate warm = simulate_stream(consumer, gpu, cache);
  EXPECT_EQ(cold.hbm.read, Bytes(512 * 4096 * 2));
  EXPECT_EQ(warm.hbm.read, Bytes());
  EXPECT_LT(warm.work, cold.work);
}

TEST(StreamKernel, ReproducesCopyBandwidthOfALargeVectorisedAdd) {
  // Measured on an H200: 369 us for 1.61 GB (65536 × 4096, two in, one out).
  EXPECT_NEAR(work_us(element_wise(65536, 4096, 2), test_gpu()) + 1.2, 369, 0.04 * 369);
}

TEST(StreamKernel, ReproducesTheGenericKernelsOfTheFramework) {
  // Measured on an H200: silu of a slice, 65536 × 4096, 701 us; at 8192 rows 90.6 us.
  const Gpu gpu = test_gpu();
  const auto strided = [&](std::int64_t rows) {
    return work_us(element_wise(rows, 4096, 1, Implementation::strided, 86), gpu) + 1.2;
  };
  EXPECT_NEAR(strided(65536), 701, 0.04 * 701);
  EXPECT_NEAR(strided(8192), 90.6, 0.06 * 90.6);
}

TEST(StreamKernel, NormsOfShortRowsWaitForTheirThreadBlocks) {
  // Measured on an H200: norms of 65,536 rows of 128 (Qwen3-8B's queries) 41.6 us, of 16,384 (its
  // keys) 12.0 us, to neither of which the constant was fitted, and of 110,592 rows of 64 68.5 us,
  // to which it was.
  const Gpu gpu = test_gpu();
  const auto norm = [&](std::int64_t rows, std::int64_t cols, std::int64_t heads) {
    StreamKernel k = element_wise(rows, cols * heads, 1, Implementation::row_norm, 33);
    k.row_blocks = rows * heads;
    return work_us(k, gpu) + 1.2;
  };
  EXPECT_NEAR(norm(2048, 128, 32), 41.6, 0.06 * 41.6);
  EXPECT_NEAR(norm(2048, 128, 8), 12.0, 0.06 * 12.0);
  EXPECT_NEAR(norm(4608, 64, 24), 68.5, 0.06 * 68.5);
}

TEST(StreamKernel, RowsAreAddedToRowsElementByElement) {
  // Measured on an H200 (index_add.csv of h200-open): 16,384 rows of 2,048 269 us, 512 such
  // rows 10.3 us. The constant was fitted to rows of 4,096 in traces, which take 5 to 12 % longer.
  const Gpu gpu = test_gpu();
  const auto add = [&](std::int64_t rows) {
    return work_us(element_wise(rows, 2048, 1, Implementation::scatter_add, 280), gpu) + 1.2;
  };
  EXPECT_NEAR(add(16384), 269, 0.12 * 269);
  EXPECT_NEAR(add(512), 10.3, 0.12 * 10.3);
}

// Measured on an H200: places of 1,100 tokens and 8 experts sorted in 23.4 us, and the rows of
// their places summed in 45.8, where 11.3 were predicted without the search.
TEST(StreamKernel, SearchesGrowWithWhatIsSearchedAndBeyondAFullGpuWithItsSquare) {
  const Gpu gpu = test_gpu();
  const auto searching = [&](std::int64_t tokens) {
    StreamKernel kernel = element_wise(tokens, 2048, 1);
    kernel.chained = {.searches = tokens * 8 / 128, .rows = 4};
    return work_us(kernel, gpu) - work_us(element_wise(tokens, 2048, 1), gpu);
  };
  EXPECT_NEAR(searching(1100), 34.5, 0.2 * 34.5);
  EXPECT_NEAR(searching(2200) / searching(1100), 2, 0.1);
  EXPECT_NEAR(searching(32768) / searching(16384), 4, 0.1);
}

// Keys that are counted, measured on an H200: 65,536 in 15.0 us, 8,800 in 4.3, 3,000 in 3.3, less
// 1.4 of an empty kernel. They were not compared: 8,800 took 23.4.
TEST(StreamKernel, CountedKeysGrowWithTheirNumber) {
  const Gpu gpu = test_gpu();
  const auto counting = [&](std::int64_t rows) {
    const Operand keys{.tensor = {}, .cols = 8, .rows = rows};
    const SortPlaces sort{.order = 1, .keys = keys, .values = 128};
    EXPECT_TRUE(sort.counts());
    StreamKernel kernel = element_wise(rows * 8, 1, 1);
    kernel.chained =
        chained_steps_of({.name = "sort", .mainloop = StreamMainloop{rows * 8, 1}, .body = {sort}});
    return time_of_chain(kernel, gpu).value() * 1e6;
  };
  EXPECT_NEAR(counting(8192), 13.6, 0.15 * 13.6);
  EXPECT_NEAR(counting(1100), 2.9, 0.2 * 2.9);
  EXPECT_NEAR(counting(375), 1.9, 0.25 * 1.9);
}

TEST(StreamKernel, FewKeysAndKeysOfManyValuesAreCompared) {
  const auto counts = [](std::int64_t rows, std::int64_t values) {
    const Operand keys{.tensor = {}, .cols = 2, .rows = rows};
    return SortPlaces{.order = 1, .keys = keys, .values = values}.counts();
  };
  EXPECT_FALSE(counts(128, 8));  // 256 keys
  EXPECT_TRUE(counts(129, 8));
  EXPECT_TRUE(counts(129, 1024));
  EXPECT_FALSE(counts(129, 1025)) << "their counts do not fit the shared memory";
  EXPECT_FALSE(counts(129, 0)) << "any numbers";
}

TEST(StreamKernel, ATinyKernelCostsLittleMoreThanItsLaunch) {
  EXPECT_LT(work_us(element_wise(1, 4096, 1), test_gpu()), 1.2);
  EXPECT_GT(work_us(element_wise(1, 4096, 1, Implementation::strided, 86), test_gpu()), 0.5);
}

TEST(StreamKernel, OneRowNormWaitsForItsDependentSteps) {
  // Measured on an H200 in a graph, row in L2: RMSNorm of one row takes 1.94 us at 1,024 columns
  // and 4.05 us at 4,096.
  const Gpu gpu = test_gpu();
  const auto norm = [&](std::int64_t cols) {
    StreamKernel kernel = element_wise(1, cols, 1, Implementation::row_norm, 33);
    kernel.whole_rows = true;
    L2Cache cache(Bytes(34 << 20));
    simulate_stream(kernel, gpu, cache);
    return to_us(simulate_stream(kernel, gpu, cache).work) + 0.95;
  };
  EXPECT_NEAR(norm(1024), 1.94, 0.4);
  EXPECT_NEAR(norm(4096), 4.05, 0.6);
}

TEST(StreamKernel, EveryRowOfAFewWaitsForAColdWeight) {
  // Measured on an H200 (traces.csv of h200-open): three norms of 8 rows of 3,584 in Gemma 2's
  // decode, rows just stored, 5.1 to 5.4 us; of 32 rows of 4,096 in Mixtral's 5.7 us. What every
  // row waits for does not depend on how many share the weight.
  const Gpu gpu = test_gpu();
  const auto norm = [&](std::int64_t rows, std::int64_t cols) {
    StreamKernel kernel = element_wise(rows, cols, 2, Implementation::row_norm, 33);
    kernel.whole_rows = true;
    kernel.streams[1].vector = true;
    kernel.streams[1].part.matrix.rows = kernel.streams[1].part.rows = 1;
    L2Cache cache(Bytes(34 << 20));
    cache.write(kernel.streams[0].part.matrix, 0, rows, 0, cols);
    return to_us(simulate_stream(kernel, gpu, cache).work) + 1.16;
  };
  EXPECT_NEAR(norm(8, 3584), 5.2, 0.12 * 5.2);
  EXPECT_NEAR(norm(32, 4096), 5.7, 0.12 * 5.7);
  EXPECT_NEAR(norm(1, 4096), norm(32, 4096), 0.3);
}

TEST(StreamKernel, ARowInRegistersIsWaitedForOnce) {
  // Measured on an H200 in a graph: our own RMSNorm of one row of 4,096, in L2, takes 1.94 us, that
  // of 2,048 such rows 8.97 us.
  const Gpu gpu = test_gpu();
  const auto norm = [&](std::int64_t rows) {
    StreamKernel kernel = element_wise(rows, 4096, 1, Implementation::resident_row, 24);
    kernel.whole_rows = true;
    L2Cache cache(Bytes(34 << 20));
    simulate_stream(kernel, gpu, cache);
    return to_us(simulate_stream(kernel, gpu, cache).work) + 1.16;
  };
  EXPECT_NEAR(norm(1), 1.94, 0.2);
  EXPECT_NEAR(norm(2048), 8.97, 1.5);
}

// A reduction waits for nothing in memory, so a row in HBM is late once: where it is loaded.
TEST(StreamKernel, OnlyTheLoadsOfARowInRegistersWaitForHbm) {
  const Gpu gpu = test_gpu();
  const StreamConstants& c = gpu.constants.stream;
  ASSERT_GT(c.resident_row_steps, 1);
  StreamKernel kernel = element_wise(1, 4096, 1, Implementation::resident_row, 24);
  kernel.whole_rows = true;
  L2Cache cache(Bytes(34 << 20));
  const StreamEstimate cold = simulate_stream(kernel, gpu, cache);
  const StreamEstimate found = simulate_stream(kernel, gpu, cache);
  const Seconds load = c.row_start + c.row_step;
  EXPECT_NEAR(to_us(cold.latency - found.latency), c.miss_wait * to_us(load), 1e-9);
}

TEST(StreamKernel, AHalfMovesItsOwnColumnsOnly) {
  const Gpu gpu = test_gpu();
  L2Cache cache(Bytes(34 << 20));
  StreamKernel kernel = element_wise(64, 512, 1);
  kernel.streams[0].moved = {.group = 128, .begin = 64, .count = 64};
  const StreamEstimate e = simulate_stream(kernel, gpu, cache);
  EXPECT_EQ(e.hbm.read, Bytes(64 * 256 * 2));
  // The other halves are still in HBM.
  kernel.streams[0].moved.begin = 0;
  EXPECT_EQ(simulate_stream(kernel, gpu, cache).hbm.read, Bytes(64 * 256 * 2));
}

TEST(StreamKernel, MoreElementsNeverTakeLessTime) {
  const Gpu gpu = test_gpu();
  for (const Implementation implementation :
       {Implementation::vectorized, Implementation::strided, Implementation::concat,
        Implementation::row_norm, Implementation::framework_reduce,
        Implementation::generated_reduction, Implementation::resident_row}) {
    double previous = 0;
    for (std::int64_t rows = 1; rows <= 16384; rows *= 2) {
      StreamKernel kernel = element_wise(rows, 4096, 2, implementation, 40);
      kernel.whole_rows = implementation == Implementation::row_norm ||
                          implementation == Implementation::resident_row;
      const double now = work_us(kernel, gpu);
      EXPECT_GE(now, previous) << name_of(implementation) << ' ' << rows;
      previous = now;
    }
  }
}

}  // namespace
}  // namespace fuseline
