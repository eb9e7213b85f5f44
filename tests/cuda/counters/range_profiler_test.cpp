#include "cuda/counters/range_profiler.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/counters/counter_check.h"

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
