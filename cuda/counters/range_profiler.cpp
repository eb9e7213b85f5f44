#include "cuda/counters/range_profiler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

#if FUSELINE_HAS_CUPTI
#include "cuda/counters/cupti_calls.h"
#include "cuda/counters/current_device.h"
#endif

namespace fuseline::cuda {

#if FUSELINE_HAS_CUPTI

namespace {

// One pass on Ampere, Ada and Hopper (tests/cuda/counters). CUPTI takes pointers to non-const.
enum Metric : std::uint8_t { kHbmRead, kHbmWrite, kL2, kTime, kMetrics };
constexpr std::array<const char*, kMetrics> kNames = {
    "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum", "gpu__time_duration.sum"};
const char** metric_names() {
  static std::array<const char*, kMetrics> names = kNames;
  return names.data();
}

using Image = std::vector<std::uint8_t>;

// CUPTI's half that needs no GPU: metrics to a configuration, counts to values.
class Host {
 public:
  // `availability` empty: what the chip has in principle.
  Host(const CuptiCalls& cupti, std::string chip, Image availability)
      : cupti_(cupti), chip_(std::move(chip)), availability_(std::move(availability)) {
    CUpti_Profiler_Host_Initialize_Params p{};
    p.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    p.pChipName = chip_.c_str();
    p.pCounterAvailabilityImage = availability_.empty() ? nullptr : availability_.data();
    call(cupti, cupti.host_initialize, p, CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE,
         "reading the counters of " + chip_);
    object_ = p.pHostObject;
  }
  ~Host() {
    CUpti_Profiler_Host_Deinitialize_Params p{};
    p.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    p.pHostObject = object_;
    (void)cupti_.host_deinitialize(&p);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] Image config() const {
    CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
    add.pHostObject = object_;
    add.ppMetricNames = metric_names();
    add.numMetrics = kMetrics;
    call(cupti_, cupti_.add_metrics, add, CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE,
         "choosing the counters");
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.pHostObject = object_;
    call(cupti_, cupti_.config_size, size,
         CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE, "choosing the counters");
    Image image(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params get{};
    get.pHostObject = object_;
    get.configImageSize = image.size();
    get.pConfigImage = image.data();
    call(cupti_, cupti_.config_image, get, CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE,
         "choosing the counters");
    return image;
  }

  [[nodiscard]] std::array<double, kMetrics> values(const Image& data, std::size_t range) const {
    std::array<double, kMetrics> values{};
    CUpti_Profiler_Host_EvaluateToGpuValues_Params p{};
    p.pHostObject = object_;
    p.pCounterDataImage = data.data();
    p.counterDataImageSize = data.size();
    p.rangeIndex = range;
    p.ppMetricNames = metric_names();
    p.numMetrics = kMetrics;
    p.pMetricValues = values.data();
    call(cupti_, cupti_.evaluate, p, CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE,
         "evaluating the counters");
    return values;
  }

 private:
  const CuptiCalls& cupti_;
  // CUPTI keeps pointers to both.
  std::string chip_;
  Image availability_;
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

std::size_t passes_of(const CuptiCalls& cupti, Image config) {
  CUpti_Profiler_Host_GetNumOfPasses_Params p{};
  p.configImageSize = config.size();
  p.pConfigImage = config.data();
  call(cupti, cupti.passes, p, CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE,
       "counting the passes");
  return p.numOfPasses;
}

void initialize(const CuptiCalls& cupti) {
  CUpti_Profiler_Initialize_Params p{};
  call(cupti, cupti.initialize, p, CUpti_Profiler_Initialize_Params_STRUCT_SIZE, "starting");
}

// The profiler at work on a context, from construction to destruction.
class Session {
 public:
  Session(const CuptiCalls& cupti, CUcontext context) : cupti_(cupti) {
    CUpti_RangeProfiler_Enable_Params p{};
    p.ctx = context;
    call(cupti, cupti.enable, p, CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE, "enabling");
    object_ = p.pRangeProfilerObject;
  }
  ~Session() {
    if (in_range_) {
      CUpti_RangeProfiler_PopRange_Params p{};
      p.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
      p.pRangeProfilerObject = object_;
      (void)cupti_.pop(&p);
    }
    if (started_) {
      CUpti_RangeProfiler_Stop_Params p{};
      p.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
      p.pRangeProfilerObject = object_;
      (void)cupti_.stop(&p);
    }
    CUpti_RangeProfiler_Disable_Params p{};
    p.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    p.pRangeProfilerObject = object_;
    (void)cupti_.disable(&p);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Memory for the counts of so many ranges.
  [[nodiscard]] Image data(std::size_t ranges) const {
    CUpti_RangeProfiler_GetCounterDataSize_Params size{};
    size.pRangeProfilerObject = object_;
    size.pMetricNames = metric_names();
    size.numMetrics = kMetrics;
    size.maxNumOfRanges = ranges;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(ranges);
    call(cupti_, cupti_.data_size, size, CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE,
         "sizing the counter data");
    Image image(size.counterDataSize);
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params init{};
    init.pRangeProfilerObject = object_;
    init.counterDataSize = image.size();
    init.pCounterData = image.data();
    call(cupti_, cupti_.data_initialize, init,
         CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE,
         "making the counter data ready");
    return image;
  }

  // Ranges that we name, one pass, no nesting.
  void configure(const Image& config, Image& data, std::size_t ranges) const {
    CUpti_RangeProfiler_SetConfig_Params p{};
    p.pRangeProfilerObject = object_;
    p.configSize = config.size();
    p.pConfig = config.data();
    p.counterDataImageSize = data.size();
    p.pCounterDataImage = data.data();
    p.range = CUPTI_UserRange;
    p.replayMode = CUPTI_UserReplay;
    p.maxRangesPerPass = ranges;
    p.numNestingLevels = 1;
    p.minNestingLevel = 1;
    p.targetNestingLevel = 1;
    call(cupti_, cupti_.set_config, p, CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE,
         "configuring");
  }
  void start() {
    CUpti_RangeProfiler_Start_Params p{};
    p.pRangeProfilerObject = object_;
    call(cupti_, cupti_.start, p, CUpti_RangeProfiler_Start_Params_STRUCT_SIZE, "starting");
    started_ = true;
  }
  void push(const std::string& name) {
    CUpti_RangeProfiler_PushRange_Params p{};
    p.pRangeProfilerObject = object_;
    p.pRangeName = name.c_str();
    call(cupti_, cupti_.push, p, CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE,
         "beginning range " + name);
    in_range_ = true;
  }
  void pop(const std::string& name) {
    in_range_ = false;
    CUpti_RangeProfiler_PopRange_Params p{};
    p.pRangeProfilerObject = object_;
    call(cupti_, cupti_.pop, p, CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE,
         "ending range " + name);
  }
  void stop() {
    started_ = false;
    CUpti_RangeProfiler_Stop_Params p{};
    p.pRangeProfilerObject = object_;
    call(cupti_, cupti_.stop, p, CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE, "stopping");
    FUSELINE_ASSERT(p.isAllPassSubmitted != 0, "the counters take one pass");
    CUpti_RangeProfiler_DecodeData_Params decode{};
    decode.pRangeProfilerObject = object_;
    call(cupti_, cupti_.decode, decode, CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE,
         "decoding the counters");
    FUSELINE_ASSERT(decode.numOfRangeDropped == 0, "every range has room");
  }

 private:
  const CuptiCalls& cupti_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  bool started_ = false;
  bool in_range_ = false;
};

Image availability(const CuptiCalls& cupti, CUcontext context) {
  CUpti_Profiler_GetCounterAvailability_Params p{};
  p.ctx = context;
  call(cupti, cupti.availability, p, CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE,
       "asking which counters are there");
  Image image(p.counterAvailabilityImageSize);
  p.pCounterAvailabilityImage = image.data();
  call(cupti, cupti.availability, p, CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE,
       "asking which counters are there");
  return image;
}

std::string chip_of(const CuptiCalls& cupti, int ordinal) {
  CUpti_Device_GetChipName_Params p{};
  p.deviceIndex = static_cast<std::size_t>(ordinal);
  call(cupti, cupti.chip_name, p, CUpti_Device_GetChipName_Params_STRUCT_SIZE,
       "asking for the chip");
  return p.pChipName;
}

// What range `index` of the data was called: its place among the caller's.
std::size_t place_of(const CuptiCalls& cupti, const Image& data, std::size_t index) {
  CUpti_RangeProfiler_CounterData_GetRangeInfo_Params p{};
  p.pCounterDataImage = data.data();
  p.counterDataImageSize = data.size();
  p.rangeIndex = index;
  p.rangeDelimiter = "/";
  call(cupti, cupti.range_info, p, CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE,
       "naming the ranges");
  return std::stoul(p.rangeName);
}

Bytes to_bytes(double value) { return Bytes(std::llround(value)); }

CountedRange counted(const std::string& name, const std::array<double, kMetrics>& values) {
  for (std::size_t i = 0; i < kMetrics; ++i)
    FUSELINE_ASSERT(std::isfinite(values[i]) && values[i] >= 0,
                    fmt::format("counter {} of range {} has a value", kNames[i], name));
  return {name, to_bytes(values[kHbmRead]), to_bytes(values[kHbmWrite]), to_bytes(values[kL2]),
          Seconds(values[kTime] * 1e-9)};
}

}  // namespace

struct RangeProfiler::State {
  CuptiCalls cupti;
  CUcontext context = nullptr;
  std::string chip;
  std::unique_ptr<Host> host;
  Image config;
};

RangeProfiler::RangeProfiler(const Device&) : state_(std::make_unique<State>()) {
  State& s = *state_;
  initialize(s.cupti);
  const auto current = current_device();
  FUSELINE_ASSERT(current.has_value(), "the device's context is current");
  s.context = static_cast<CUcontext>(current->context);
  s.chip = chip_of(s.cupti, current->ordinal);
  s.host = std::make_unique<Host>(s.cupti, s.chip, availability(s.cupti, s.context));
  s.config = s.host->config();
  FUSELINE_ASSERT(passes_of(s.cupti, s.config) == 1, "the counters take one pass on " + s.chip);
  // Whether we may at all shows here.
  const Session trial(s.cupti, s.context);
}

const std::string& RangeProfiler::chip() const { return state_->chip; }

std::vector<CountedRange> RangeProfiler::measure(const std::vector<std::string>& names,
                                                 const std::function<void(std::size_t)>& run,
                                                 const std::function<void()>& before) const {
  if (names.empty()) return {};
  const State& s = *state_;
  const std::size_t unseen = before ? 1 : 0;
  const std::size_t all = names.size() + unseen;
  Session session(s.cupti, s.context);
  Image data = session.data(all);
  session.configure(s.config, data, all);
  session.start();
  // A range is called by its place, because names may repeat.
  const auto count = [&](std::size_t place, const auto& work) {
    session.push(std::to_string(place));
    work();
    session.pop(std::to_string(place));
  };
  if (before) count(names.size(), before);
  for (std::size_t i = 0; i < names.size(); ++i) count(i, [&] { run(i); });
  session.stop();

  CUpti_RangeProfiler_GetCounterDataInfo_Params info{};
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  call(s.cupti, s.cupti.data_info, info, CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE,
       "counting the ranges");
  FUSELINE_ASSERT(info.numTotalRanges == all, "every range was counted");
  std::vector<CountedRange> ranges(names.size());
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t place = place_of(s.cupti, data, i);
    FUSELINE_ASSERT(place < all, "a range is one of ours");
    if (place < names.size()) ranges[place] = counted(names[place], s.host->values(data, i));
  }
  return ranges;
}

std::vector<std::string> counter_chips() {
  const CuptiCalls cupti;
  CUpti_Profiler_Host_GetSupportedChips_Params p{};
  call(cupti, cupti.supported_chips, p, CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE,
       "listing the chips");
  return {p.ppChipNames, p.ppChipNames + p.numChips};
}

std::size_t counter_passes(const std::string& chip) {
  const std::vector<std::string> chips = counter_chips();
  if (std::ranges::find(chips, chip) == chips.end())
    throw InputError({.field = "chip",
                      .value = chip,
                      .message = "CUPTI knows no such chip",
                      .allowed = fmt::format("{}", fmt::join(chips, ", ")),
                      .nearest = nearest_name(chip, chips)});
  const CuptiCalls cupti;
  const Host host(cupti, chip, {});
  return passes_of(cupti, host.config());
}

#else

namespace {

[[noreturn]] void no_cupti() {
  throw MissingError(
      "no hardware counters: this fuseline was built without the headers of CUPTI's range "
      "profiler, "
      "which come with CUDA 12.6 or newer; `fuseline import` takes the counters from Nsight "
      "Compute's CSV instead");
}

}  // namespace

struct RangeProfiler::State {
  std::string chip;
};
RangeProfiler::RangeProfiler(const Device&) { no_cupti(); }
const std::string& RangeProfiler::chip() const { return state_->chip; }
std::vector<CountedRange> RangeProfiler::measure(const std::vector<std::string>&,
                                                 const std::function<void(std::size_t)>&,
                                                 const std::function<void()>&) const {
  no_cupti();
}
std::vector<std::string> counter_chips() { no_cupti(); }
std::size_t counter_passes(const std::string&) { no_cupti(); }

#endif

RangeProfiler::~RangeProfiler() = default;
RangeProfiler::RangeProfiler(RangeProfiler&&) noexcept = default;
RangeProfiler& RangeProfiler::operator=(RangeProfiler&&) noexcept = default;

}  // namespace fuseline::cuda
