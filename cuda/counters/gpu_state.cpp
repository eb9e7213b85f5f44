#include "cuda/counters/gpu_state.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "cuda/compile/shared_library.h"
#include "cuda/counters/current_device.h"

namespace fuseline::cuda {

namespace {

// NVML's interface as far as we use it (docs.nvidia.com/deploy/nvml-api). nvml.h is not in every
// toolkit, and the interface is fixed.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr int kSensorGpu = 0;
constexpr unsigned kPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT; power_usage is a mean of 1 s
struct NvmlField {
  unsigned id = 0, scope = 0;
  long long timestamp = 0, latency_us = 0;
  int type = 0;    // of the value
  int result = 0;  // kSuccess
  union {
    double real;
    unsigned whole;
    unsigned long long wide;
  } value{};
};
static_assert(sizeof(NvmlField) == 40);
constexpr int kTypeWhole = 1;

struct Nvml {
  SharedLibrary library{{"libnvidia-ml.so.1", "libnvidia-ml.so"},
                        "clocks and power are not read: no NVML, which comes with the driver"};
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_bus)(const char*, NvmlDevice*) = nullptr;
  int (*by_index)(unsigned, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;            // MHz
  int (*power)(NvmlDevice, unsigned*) = nullptr;                 // mW
  int (*power_limit)(NvmlDevice, unsigned*) = nullptr;           // mW
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;      // degrees Celsius
  int (*throttling)(NvmlDevice, unsigned long long*) = nullptr;  // bits
  int (*driver)(char*, unsigned) = nullptr;
  int (*fields)(NvmlDevice, int, NvmlField*) = nullptr;
  NvmlDevice device = nullptr;

  Nvml() {
    library.load(init, "nvmlInit_v2");
    library.load(shutdown, "nvmlShutdown");
    library.load(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
    library.load(by_index, "nvmlDeviceGetHandleByIndex_v2");
    library.load(clock, "nvmlDeviceGetClockInfo");
    library.load(power, "nvmlDeviceGetPowerUsage");
    library.load(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    library.load(temperature, "nvmlDeviceGetTemperature");
    library.load(throttling, "nvmlDeviceGetCurrentClocksThrottleReasons");
    library.load(driver, "nvmlSystemGetDriverVersion");
    library.load(fields, "nvmlDeviceGetFieldValues");
    if (init() != kSuccess)
      throw MissingError("clocks and power are not read: NVML does not start");
    const auto current = current_device();
    const int found = current ? by_bus(current->pci_bus.c_str(), &device) : by_index(0, &device);
    if (found != kSuccess) {
      (void)shutdown();
      throw MissingError("clocks and power are not read: NVML does not find the GPU");
    }
  }
  ~Nvml() { (void)shutdown(); }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::optional<Hertz> clock_of(int which) const {
    unsigned mhz = 0;
    if (clock(device, which, &mhz) != kSuccess) return std::nullopt;
    return Hertz(1e6 * mhz);
  }
  [[nodiscard]] std::optional<Watts> power_now() const {
    NvmlField field;
    field.id = kPowerInstant;
    if (fields(device, 1, &field) == kSuccess && field.result == kSuccess &&
        field.type == kTypeWhole)
      return Watts(1e-3 * field.value.whole);
    unsigned mw = 0;
    if (power(device, &mw) != kSuccess) return std::nullopt;
    return Watts(1e-3 * mw);
  }
  [[nodiscard]] GpuState read() const {
    GpuState state;
    state.sm_clock = clock_of(kClockSm);
    state.memory_clock = clock_of(kClockMemory);
    state.power = power_now();
    unsigned value = 0;
    if (power_limit(device, &value) == kSuccess) state.power_limit = Watts(1e-3 * value);
    if (temperature(device, kSensorGpu, &value) == kSuccess)
      state.celsius = static_cast<int>(value);
    unsigned long long bits = 0;
    if (throttling(device, &bits) == kSuccess) state.throttling = throttle_reasons(bits);
    return state;
  }
};

struct Reason {
  unsigned long long bit;
  const char* words;
};
// nvmlClocksEventReasons. Idle (1) and clocks that the user set (2) slow nothing down.
constexpr std::array<Reason, 7> kReasons = {{{0x4, "software power cap"},
                                             {0x8, "hardware slowdown"},
                                             {0x10, "sync boost"},
                                             {0x20, "software thermal slowdown"},
                                             {0x40, "hardware thermal slowdown"},
                                             {0x80, "hardware power brake"},
                                             {0x100, "display clock setting"}}};

// The values of one member over the states that have it, in order.
template <class T>
std::vector<T> sorted(const std::vector<GpuState>& states, std::optional<T> GpuState::*member) {
  std::vector<T> values;
  for (const GpuState& state : states)
    if (state.*member) values.push_back(*(state.*member));
  std::ranges::sort(values);
  return values;
}

}  // namespace

std::vector<std::string> throttle_reasons(unsigned long long bits) {
  std::vector<std::string> words;
  for (const Reason& reason : kReasons)
    if ((bits & reason.bit) != 0) words.emplace_back(reason.words);
  return words;
}

GpuStateSummary summarise(const std::vector<GpuState>& states) {
  GpuStateSummary summary;
  summary.samples = states.size();
  if (const auto clocks = sorted(states, &GpuState::sm_clock); !clocks.empty()) {
    summary.sm_clock_median = clocks[clocks.size() / 2];
    summary.sm_clock_least = clocks.front();
    summary.sm_clock_most = clocks.back();
  }
  if (const auto clocks = sorted(states, &GpuState::memory_clock); !clocks.empty())
    summary.memory_clock = clocks[clocks.size() / 2];
  if (const auto powers = sorted(states, &GpuState::power); !powers.empty()) {
    Watts sum;
    for (const Watts power : powers) sum += power;
    summary.power_mean = sum / static_cast<double>(powers.size());
  }
  if (const auto limits = sorted(states, &GpuState::power_limit); !limits.empty())
    summary.power_limit = limits.front();
  if (const auto temperatures = sorted(states, &GpuState::celsius); !temperatures.empty())
    summary.celsius_most = temperatures.back();
  std::set<std::string> seen;
  for (const GpuState& state : states)
    seen.insert(state.throttling.begin(), state.throttling.end());
  for (const Reason& reason : kReasons)
    if (seen.contains(reason.words)) summary.throttling.emplace_back(reason.words);
  return summary;
}

struct GpuMonitor::State {
  std::unique_ptr<Nvml> nvml;  // empty: missing says why
  std::string missing;
  std::mutex mutex;  // of the two below
  std::condition_variable_any wake;
  std::vector<GpuState> samples;
  std::jthread sampler;  // last: it ends before what it uses

  void sample(const std::stop_token& stop) {
    constexpr auto kPeriod = std::chrono::milliseconds(10);
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      samples.push_back(nvml->read());
      wake.wait_for(lock, stop, kPeriod, [] { return false; });
    }
  }
};

GpuMonitor::GpuMonitor() : state_(std::make_unique<State>()) {
  try {
    state_->nvml = std::make_unique<Nvml>();
  } catch (const MissingError& error) {
    state_->missing = error.what();
  }
}
GpuMonitor::~GpuMonitor() = default;
GpuMonitor::GpuMonitor(GpuMonitor&&) noexcept = default;
GpuMonitor& GpuMonitor::operator=(GpuMonitor&&) noexcept = default;

const std::string& GpuMonitor::missing() const { return state_->missing; }

std::string GpuMonitor::driver_version() const {
  std::array<char, 96> text{};
  if (!state_->nvml ||
      state_->nvml->driver(text.data(), static_cast<unsigned>(text.size())) != kSuccess)
    return {};
  return text.data();
}

GpuState GpuMonitor::read() const { return state_->nvml ? state_->nvml->read() : GpuState{}; }

void GpuMonitor::start() {
  FUSELINE_ASSERT(!state_->sampler.joinable(), "one watch at a time");
  state_->samples.clear();
  if (!state_->nvml) return;
  State* state = state_.get();
  state->sampler = std::jthread([state](const std::stop_token& stop) { state->sample(stop); });
}

GpuStateSummary GpuMonitor::stop() {
  State& state = *state_;
  if (!state.nvml) return {};
  if (state.sampler.joinable()) {
    state.sampler.request_stop();
    state.sampler.join();
    state.sampler = {};
  }
  state.samples.push_back(state.nvml->read());
  return summarise(state.samples);
}

}  // namespace fuseline::cuda
