#include "cuda/counters/range_profiler.h"

#include <array>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/counters/counter_check.h"
#include "cuda/run/kernel_store.h"

#if defined(__SANITIZE_ADDRESS__)
#define FUSELINE_WITH_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUSELINE_WITH_ADDRESS_SANITIZER
#endif
#endif

namespace fuseline::cuda {
namespace {

using testing::HasSubstr;

// CUPTI's half that needs no GPU; skipped, with the reason, where there is no CUPTI.
class CounterMetrics : public testing::Test {
 protected:
  void SetUp() override {
#ifdef FUSELINE_WITH_ADDRESS_SANITIZER
    GTEST_SKIP() << "CUPTI opens its libraries with RTLD_DEEPBIND, which the sanitizer refuses";
#endif
    try {
      (void)counter_chips();
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};

TEST_F(CounterMetrics, FitOnePassFromAmpereToHopper) {
  for (const char* chip : {"GA100", "GA102", "AD102", "GH100"})
    EXPECT_EQ(counter_passes(chip), 1U) << chip;
}

TEST_F(CounterMetrics, UnknownChipIsRefusedWithTheNearest) {
  try {
    (void)counter_passes("GH10");
    FAIL() << "GH10 was taken for a chip";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().nearest, "GH100");
    EXPECT_THAT(error.problem().allowed, HasSubstr("GA100"));
  }
}

CounterCheck check_of(std::int64_t read, std::int64_t written) {
  CounterCheck check;
  check.expected = Bytes(1000);
  check.read = Bytes(read);
  check.written = Bytes(written);
  check.margin = 0.05;
  return check;
}

TEST(CounterCheckResult, PassesWithinItsMarginOnly) {
  EXPECT_TRUE(check_of(1049, 951).passed());
  EXPECT_FALSE(check_of(1051, 1000).passed());
  EXPECT_FALSE(check_of(1000, 949).passed());
  EXPECT_FALSE(check_of(0, 0).passed());
  EXPECT_FALSE(CounterCheck{}.passed());
}

TEST(CounterCheckResult, SaysWhatItSaw) {
  CounterCheck check = check_of(1'020'000'000, 2'000'000'000);
  check.expected = Bytes(1'000'000'000);
  EXPECT_THAT(describe(check), HasSubstr("1.000 GB copied: the counters say 1.020 GB read and "
                                         "2.000 GB written"));
  EXPECT_THAT(describe(check), HasSubstr("not both within 5.0 %"));
}

TEST(CounterCheckKernel, MovesWholeVectorsWithoutSpills) {
  std::optional<Compiler> compiler;
  try {
    compiler.emplace();
  } catch (const MissingError& error) {
    GTEST_SKIP() << error.what();
  }
  const Compiled compiled = compiler->compile(counter_check_source(), SmTarget::sm_80);
  EXPECT_EQ(compiled.use.spill_bytes, 0);
  EXPECT_THAT(compiled.ptx, HasSubstr("ld.global"));
  EXPECT_THAT(compiled.ptx, HasSubstr("st.global.v4"));
}

// On a GPU whose counters are open to us; skipped, with the reason, elsewhere.
class SlowGpuCounters : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_.emplace();
      profiler_.emplace(*device_);
    } catch (const MissingError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  std::optional<Device> device_;
  std::optional<RangeProfiler> profiler_;
};

TEST_F(SlowGpuCounters, SeeACopyOfKnownSize) {
  const CounterCheck check = check_counters(*device_, *profiler_);
  RecordProperty("check", describe(check));
  EXPECT_TRUE(check.passed()) << describe(check);
  EXPECT_GE(check.expected.value(), 4 * device_->info().l2.value());
  // Each byte crosses L2 on its way in and on its way out.
  EXPECT_GE(check.l2, 2 * check.expected) << describe(check);
}

TEST_F(SlowGpuCounters, TellRangesApartInOrder) {
  // Fills of 1, 2 and 3 times a size far beyond L2: each also writes what the one before left
  // dirty and leaves as much itself, L2's size at most.
  const Bytes unit = 8 * device_->info().l2;
  DeviceBuffer memory = device_->allocate(3 * unit);
  Stream stream = device_->stream();
  const std::vector<std::string> names = {"same", "same", "other"};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto ranges = profiler_->measure(names, [&](std::size_t i) {
      stream.zero(memory.address(), static_cast<std::int64_t>(i + 1) * unit);
      stream.synchronize("filling memory");
    });
    ASSERT_EQ(ranges.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(ranges[i].name, names[i]);
      EXPECT_NEAR(ranges[i].hbm_write.as_double(), static_cast<double>(i + 1) * unit.as_double(),
                  1.01 * device_->info().l2.as_double())
          << i;
      EXPECT_GT(ranges[i].time.value(), 0) << i;
    }
  }
}

// Reads all of its input and stores nothing: the condition holds for no input of zeros.
constexpr const char* kReader = R"(
extern "C" __global__ void reader(const uint4* from, unsigned* to, long long count) {
  unsigned bits = 0;
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads)
    bits |= from[i].x | from[i].y | from[i].z | from[i].w;
  if (bits != 0) *to = bits;
}
)";

TEST_F(SlowGpuCounters, WhatTheProfilerWroteAsItBeganIsNoWriteOfTheFirstRange) {
  // Given a kernel that only reads, several times what L2 holds.
  const Bytes size = 8 * device_->info().l2;
  DeviceBuffer memory = device_->allocate(size);
  Stream stream = device_->stream();
  stream.zero(memory.address(), size);
  stream.synchronize("filling memory");
  KernelStore store(*device_, CubinCache::standard());
  const Module& module = store.load({"reader.cu", kReader});
  const Function reader = module.function("reader", 0);
  std::uint64_t from = memory.address(), to = from;
  long long count = size.value() / 16;
  std::array<void*, 3> arguments = {&from, &to, &count};
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(device_->info().multiprocessors) * 8;
  shape.block[0] = 256;
  const auto read = [&] {
    stream.launch(reader, shape, arguments);
    stream.synchronize("reading memory");
  };
  // When it runs unseen before it counts, then the range has its reads and no writes to speak of.
  const CountedRange before = profiler_->measure({"read"}, [&](std::size_t) { read(); }).at(0);
  const CountedRange after = profiler_
                                 ->measure(
                                     {"read"}, [&](std::size_t) { read(); }, read)
                                 .at(0);
  RecordProperty("written_without_an_unseen_range", std::to_string(before.hbm_write.value()));
  RecordProperty("written_behind_an_unseen_range", std::to_string(after.hbm_write.value()));
  EXPECT_EQ(after.name, "read");
  EXPECT_NEAR(after.hbm_read.as_double(), size.as_double(), 0.15 * size.as_double());
  EXPECT_LT(after.hbm_write.as_double(), 0.02 * device_->info().l2.as_double())
      << "without an unseen range " << before.hbm_write.value();
}

TEST_F(SlowGpuCounters, CountAGraph) {
  const Bytes size = 8 * device_->info().l2;
  DeviceBuffer memory = device_->allocate(size);
  Stream stream = device_->stream();
  stream.begin_capture();
  stream.zero(memory.address(), size);
  stream.zero(memory.address(), size);
  const LaunchGraph graph = stream.end_capture();
  const auto ranges = profiler_->measure({"graph"}, [&](std::size_t) {
    stream.launch(graph);
    stream.synchronize("running a graph");
  });
  EXPECT_NEAR(ranges.at(0).hbm_write.as_double(), 2 * size.as_double(),
              1.01 * device_->info().l2.as_double());
}

TEST_F(SlowGpuCounters, AreFreeAgainAfterAnError) {
  EXPECT_THROW((void)profiler_->measure({"a", "b"},
                                        [](std::size_t) { throw InputError({.message = "stop"}); }),
               InputError);
  const auto ranges = profiler_->measure({"c"}, [](std::size_t) {});
  EXPECT_EQ(ranges.at(0).name, "c");
}

}  // namespace
}  // namespace fuseline::cuda
