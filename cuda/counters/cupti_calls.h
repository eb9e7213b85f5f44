// The functions of CUPTI that fuseline uses, found while the program runs. Only files of
// cuda/counters include this.
#pragma once

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <string>

#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

class CuptiCalls {
 public:
  CuptiCalls();  // MissingError: no CUPTI, or one without the range profiler

  decltype(&cuptiGetResultString) result_string;
  decltype(&cuptiProfilerInitialize) initialize;
  decltype(&cuptiDeviceGetChipName) chip_name;
  decltype(&cuptiProfilerGetCounterAvailability) availability;
  decltype(&cuptiProfilerHostInitialize) host_initialize;
  decltype(&cuptiProfilerHostDeinitialize) host_deinitialize;
  decltype(&cuptiProfilerHostGetSupportedChips) supported_chips;
  decltype(&cuptiProfilerHostConfigAddMetrics) add_metrics;
  decltype(&cuptiProfilerHostGetConfigImageSize) config_size;
  decltype(&cuptiProfilerHostGetConfigImage) config_image;
  decltype(&cuptiProfilerHostGetNumOfPasses) passes;
  decltype(&cuptiProfilerHostEvaluateToGpuValues) evaluate;
  decltype(&cuptiRangeProfilerEnable) enable;
  decltype(&cuptiRangeProfilerDisable) disable;
  decltype(&cuptiRangeProfilerGetCounterDataSize) data_size;
  decltype(&cuptiRangeProfilerCounterDataImageInitialize) data_initialize;
  decltype(&cuptiRangeProfilerSetConfig) set_config;
  decltype(&cuptiRangeProfilerStart) start;
  decltype(&cuptiRangeProfilerStop) stop;
  decltype(&cuptiRangeProfilerPushRange) push;
  decltype(&cuptiRangeProfilerPopRange) pop;
  decltype(&cuptiRangeProfilerDecodeData) decode;
  decltype(&cuptiRangeProfilerGetCounterDataInfo) data_info;
  decltype(&cuptiRangeProfilerCounterDataGetRangeInfo) range_info;

  // MissingError where the machine or its settings forbid counters, InternalError otherwise.
  void check(CUptiResult result, const std::string& doing) const;

 private:
  SharedLibrary library_;
};

// Calls `function` with its parameters, whose size CUPTI wants to know.
template <class Function, class Parameters>
void call(const CuptiCalls& cupti, Function function, Parameters& parameters, std::size_t size,
          const std::string& doing) {
  parameters.structSize = size;
  cupti.check(function(&parameters), doing);
}

}  // namespace fuseline::cuda
