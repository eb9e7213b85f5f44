#if FUSELINE_HAS_CUPTI

#include "cuda/counters/cupti_calls.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/vendor/toolkit_library.h"

namespace fuseline::cuda {

namespace {

constexpr const char* kOtherWay =
    "`fuseline import` takes the counters from Nsight Compute's CSV instead";

// What the user can do about it; empty: it is a bug of ours.
std::string remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "the driver lets only administrators read hardware counters: run as root, or load the "
             "kernel module with NVreg_RestrictProfilingToAdminUsers=0 (in /etc/modprobe.d, then "
             "reboot)";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "the hypervisor of this virtual machine does not let its guests read hardware "
             "counters: use a whole GPU, or have the hypervisor allow profiling";
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_DEVICE:
      return "this GPU or its driver has no hardware counters for CUPTI's range profiler: it wants "
             "Turing or newer and a driver as new as the toolkit";
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
      return "another profiler holds the GPU's counters: end it, or run without it";
    default:
      return {};
  }
}

}  // namespace

CuptiCalls::CuptiCalls()
    : library_(
          toolkit_library("cupti", {"13", "12"}),
          fmt::format("no hardware counters: CUPTI, which comes with the CUDA toolkit (12.6 or "
                      "newer), is not here; {}",
                      kOtherWay)) {
  library_.load(result_string, "cuptiGetResultString");
  library_.load(initialize, "cuptiProfilerInitialize");
  library_.load(chip_name, "cuptiDeviceGetChipName");
  library_.load(availability, "cuptiProfilerGetCounterAvailability");
  library_.load(host_initialize, "cuptiProfilerHostInitialize");
  library_.load(host_deinitialize, "cuptiProfilerHostDeinitialize");
  library_.load(supported_chips, "cuptiProfilerHostGetSupportedChips");
  library_.load(add_metrics, "cuptiProfilerHostConfigAddMetrics");
  library_.load(config_size, "cuptiProfilerHostGetConfigImageSize");
  library_.load(config_image, "cuptiProfilerHostGetConfigImage");
  library_.load(passes, "cuptiProfilerHostGetNumOfPasses");
  library_.load(evaluate, "cuptiProfilerHostEvaluateToGpuValues");
  library_.load(enable, "cuptiRangeProfilerEnable");
  library_.load(disable, "cuptiRangeProfilerDisable");
  library_.load(data_size, "cuptiRangeProfilerGetCounterDataSize");
  library_.load(data_initialize, "cuptiRangeProfilerCounterDataImageInitialize");
  library_.load(set_config, "cuptiRangeProfilerSetConfig");
  library_.load(start, "cuptiRangeProfilerStart");
  library_.load(stop, "cuptiRangeProfilerStop");
  library_.load(push, "cuptiRangeProfilerPushRange");
  library_.load(pop, "cuptiRangeProfilerPopRange");
  library_.load(decode, "cuptiRangeProfilerDecodeData");
  library_.load(data_info, "cuptiRangeProfilerGetCounterDataInfo");
  library_.load(range_info, "cuptiRangeProfilerCounterDataGetRangeInfo");
}

void CuptiCalls::check(CUptiResult result, const std::string& doing) const {
  if (result == CUPTI_SUCCESS) return;
  const char* name = nullptr;
  if (result_string(result, &name) != CUPTI_SUCCESS || name == nullptr) name = "unknown error";
  if (const std::string help = remedy(result); !help.empty())
    throw MissingError(
        fmt::format("no hardware counters here ({}): {}; {}", name, help, kOtherWay));
  throw InternalError(fmt::format("CUPTI, {}: {}", doing, name));
}

}  // namespace fuseline::cuda

#endif
