#include "cuda/counters/counter_check.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/run/kernel_store.h"

namespace fuseline::cuda {

namespace {

// 16 bytes a step. Not a copy by the driver, which may leave it to an engine beside the SMs.
constexpr const char* kCopy = R"(
extern "C" __global__ void counter_check_copy(const uint4* from, uint4* to, long long count) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads)
    to[i] = from[i];
}
)";

double relative_error(Bytes measured, Bytes expected) {
  return std::abs(measured.as_double() / expected.as_double() - 1.0);
}

}  // namespace

Source counter_check_source() { return {"counter_check.cu", kCopy}; }

bool CounterCheck::passed() const {
  return expected.value() > 0 && relative_error(read, expected) <= margin &&
         relative_error(written, expected) <= margin;
}

std::string describe(const CounterCheck& check) {
  return fmt::format(
      "{:.3f} GB copied: the counters say {:.3f} GB read and {:.3f} GB written, {:.3f} GB through "
      "L2 ({} within {:.1f} %)",
      check.expected.as_double() * 1e-9, check.read.as_double() * 1e-9,
      check.written.as_double() * 1e-9, check.l2.as_double() * 1e-9,
      check.passed() ? "both" : "not both", check.margin * 100);
}

#if FUSELINE_HAS_CUDA

CounterCheck check_counters(const Device& device, const RangeProfiler& profiler) {
  constexpr std::int64_t kMost = 16;
  constexpr std::int64_t kLeast = 4;
  const Bytes l2 = device.info().l2;
  const std::int64_t times =
      std::min(kMost, device.free_memory().value() / (3 * std::max<std::int64_t>(l2.value(), 1)));
  if (times < kLeast)
    throw MissingError(fmt::format(
        "too little free memory on the GPU to check its counters: {} bytes, which are less than 12 "
        "times its L2",
        device.free_memory().value()));

  KernelStore store(device, CubinCache::standard());
  const Module& module = store.load(counter_check_source());
  const Function copy = module.function("counter_check_copy", 0);
  CounterCheck check;
  check.expected = times * l2;
  check.margin = 1.0 / static_cast<double>(times) + 0.01;
  DeviceBuffer from = device.allocate(check.expected);
  DeviceBuffer to = device.allocate(check.expected);
  from.fill(0x3f8ccccdU);

  Stream stream = device.stream();
  std::uint64_t from_address = from.address();
  std::uint64_t to_address = to.address();
  long long count = check.expected.value() / 16;
  std::array<void*, 3> arguments = {&from_address, &to_address, &count};
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(device.info().multiprocessors) * 8;
  shape.block[0] = 256;
  const auto ranges = profiler.measure({"before", "copy"}, [&](std::size_t) {
    stream.launch(copy, shape, arguments);
    stream.synchronize("copying memory to check the counters");
  });
  check.read = ranges[1].hbm_read;
  check.written = ranges[1].hbm_write;
  check.l2 = ranges[1].l2;
  return check;
}

#else

CounterCheck check_counters(const Device&, const RangeProfiler&) {
  throw MissingError("no hardware counters: this fuseline was built without a CUDA toolkit");
}

#endif

}  // namespace fuseline::cuda
