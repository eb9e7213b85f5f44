// The functions of libcuda that fuseline uses, found while the program runs. Only the files of
// cuda/ that talk to the driver include this.
#pragma once

#include <cuda.h>

#include <optional>
#include <string>

#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

class DriverCalls {
 public:
  DriverCalls();  // MissingError: no driver

  // None yet: whoever asks for this fills those in that will be called (recorded_driver.cpp).
  struct Empty {};
  explicit DriverCalls(Empty) {}

  decltype(&cuInit) init = nullptr;
  decltype(&cuDriverGetVersion) driver_version = nullptr;
  decltype(&cuGetErrorName) error_name = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
  decltype(&cuDeviceGetCount) device_count = nullptr;
  decltype(&cuDeviceGet) device_get = nullptr;
  decltype(&cuDeviceGetName) device_name = nullptr;
  decltype(&cuDeviceGetAttribute) device_attribute = nullptr;
  decltype(&cuDeviceTotalMem) device_memory = nullptr;
  decltype(&cuDevicePrimaryCtxRetain) retain_context = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) release_context = nullptr;
  decltype(&cuCtxSetCurrent) set_context = nullptr;
  decltype(&cuMemGetInfo) memory_info = nullptr;
  decltype(&cuMemAlloc) allocate = nullptr;
  decltype(&cuMemFree) free = nullptr;
  decltype(&cuMemsetD8) fill_bytes = nullptr;
  decltype(&cuMemsetD32) fill_words = nullptr;
  decltype(&cuMemsetD8Async) fill_bytes_async = nullptr;
  decltype(&cuMemcpyHtoD) upload = nullptr;
  decltype(&cuMemcpyDtoH) download = nullptr;
  decltype(&cuModuleLoadData) load_module = nullptr;
  decltype(&cuModuleUnload) unload_module = nullptr;
  decltype(&cuModuleGetFunction) get_function = nullptr;
  decltype(&cuModuleGetGlobal) get_global = nullptr;
  decltype(&cuFuncSetAttribute) set_function_attribute = nullptr;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) blocks_at_once = nullptr;
#if CUDA_VERSION >= 12000
  decltype(&cuOccupancyMaxActiveClusters) clusters_at_once = nullptr;
#endif
  decltype(&cuLaunchKernelEx) launch = nullptr;
  decltype(&cuStreamCreate) create_stream = nullptr;
  decltype(&cuStreamDestroy) destroy_stream = nullptr;
  decltype(&cuStreamSynchronize) synchronize_stream = nullptr;
  decltype(&cuStreamQuery) query_stream = nullptr;
  decltype(&cuStreamBeginCapture) begin_capture = nullptr;
  decltype(&cuStreamEndCapture) end_capture = nullptr;
  decltype(&cuGraphInstantiateWithFlags) instantiate_graph = nullptr;
  decltype(&cuGraphLaunch) launch_graph = nullptr;
  decltype(&cuGraphDestroy) destroy_graph = nullptr;
  decltype(&cuGraphExecDestroy) destroy_graph_exec = nullptr;
  decltype(&cuEventCreate) create_event = nullptr;
  decltype(&cuEventRecord) record_event = nullptr;
  decltype(&cuEventRecordWithFlags) record_event_with_flags = nullptr;
  decltype(&cuEventSynchronize) synchronize_event = nullptr;
  decltype(&cuEventElapsedTime) elapsed_time = nullptr;
  decltype(&cuEventDestroy) destroy_event = nullptr;
#if CUDA_VERSION >= 12000
  decltype(&cuTensorMapEncodeTiled) encode_tensor_map = nullptr;
#endif

  // InternalError naming the failed call.
  void check(CUresult result, const std::string& doing) const;
  [[nodiscard]] std::string describe(CUresult result) const;

 private:
  std::optional<SharedLibrary> library_;
};

}  // namespace fuseline::cuda
