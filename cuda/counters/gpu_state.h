// Clocks, power and throttling of the GPU while it works (NVML). None of it is needed to measure:
// what cannot be read stays empty.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline::cuda {

struct GpuState {
  std::optional<Hertz> sm_clock, memory_clock;
  std::optional<Watts> power, power_limit;
  std::optional<int> celsius;
  std::vector<std::string> throttling;  // "software power cap", in the order of NVML's bits
};

// States between start() and stop(), one about every 10 ms. The power sensor lags: on an H200 the
// first 50 ms of work still read almost idle, so watch longer where power matters.
struct GpuStateSummary {
  std::size_t samples = 0;
  std::optional<Hertz> sm_clock_median, sm_clock_least, sm_clock_most;
  std::optional<Hertz> memory_clock;  // median
  std::optional<Watts> power_mean, power_limit;
  std::optional<int> celsius_most;
  std::vector<std::string> throttling;  // seen in any sample
};

// The states' summary; no states give an empty one.
GpuStateSummary summarise(const std::vector<GpuState>& states);
// Reasons of NVML's bit mask in words; idling and user-set clocks are none.
std::vector<std::string> throttle_reasons(unsigned long long bits);

// Watches the GPU of the context that is current in this thread, or the first one where none is.
class GpuMonitor {
 public:
  GpuMonitor();
  ~GpuMonitor();
  GpuMonitor(GpuMonitor&&) noexcept;
  GpuMonitor& operator=(GpuMonitor&&) noexcept;
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // Why nothing can be read; empty when it can.
  [[nodiscard]] const std::string& missing() const;
  [[nodiscard]] std::string driver_version() const;  // "580.159.04"
  [[nodiscard]] GpuState read() const;

  // Samples in a thread of its own from start() to stop(). stop() takes a last sample, so that
  // there is one at least.
  void start();
  GpuStateSummary stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fuseline::cuda
