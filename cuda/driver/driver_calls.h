// The functions of libcuda that fuseline uses, found while the program runs. Only the files of
// cuda/ that talk to the driver include this.
#pragma once

#include <cuda.h>

#include <string>

#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

class DriverCalls {
 public:
  DriverCalls();  // MissingError: no driver

  decltype(&cuInit) init;
  decltype(&cuDriverGetVersion) driver_version;
  decltype(&cuGetErrorName) error_name;
  decltype(&cuGetErrorString) error_string;
  decltype(&cuDeviceGetCount) device_count;
  decltype(&cuDeviceGet) device_get;
  decltype(&cuDeviceGetName) device_name;
  decltype(&cuDeviceGetAttribute) device_attribute;
  decltype(&cuDeviceTotalMem) device_memory;
  decltype(&cuDevicePrimaryCtxRetain) retain_context;
  decltype(&cuDevicePrimaryCtxRelease) release_context;
  decltype(&cuCtxSetCurrent) set_context;
  decltype(&cuMemGetInfo) memory_info;
  decltype(&cuMemAlloc) allocate;
  decltype(&cuMemFree) free;
  decltype(&cuMemsetD8) fill_bytes;
  decltype(&cuMemsetD32) fill_words;
  decltype(&cuMemsetD8Async) fill_bytes_async;
  decltype(&cuMemcpyHtoD) upload;
  decltype(&cuMemcpyDtoH) download;
  decltype(&cuModuleLoadData) load_module;
  decltype(&cuModuleUnload) unload_module;
  decltype(&cuModuleGetFunction) get_function;
  decltype(&cuModuleGetGlobal) get_global;
  decltype(&cuFuncSetAttribute) set_function_attribute;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) blocks_at_once;
  decltype(&cuLaunchKernelEx) launch;
  decltype(&cuStreamCreate) create_stream;
  decltype(&cuStreamDestroy) destroy_stream;
  decltype(&cuStreamSynchronize) synchronize_stream;
  decltype(&cuStreamBeginCapture) begin_capture;
  decltype(&cuStreamEndCapture) end_capture;
  decltype(&cuGraphInstantiateWithFlags) instantiate_graph;
  decltype(&cuGraphLaunch) launch_graph;
  decltype(&cuGraphDestroy) destroy_graph;
  decltype(&cuGraphExecDestroy) destroy_graph_exec;
  decltype(&cuEventCreate) create_event;
  decltype(&cuEventRecord) record_event;
  decltype(&cuEventRecordWithFlags) record_event_with_flags;
  decltype(&cuEventSynchronize) synchronize_event;
  decltype(&cuEventElapsedTime) elapsed_time;
  decltype(&cuEventDestroy) destroy_event;
#if CUDA_VERSION >= 12000
  decltype(&cuTensorMapEncodeTiled) encode_tensor_map;
#endif

  // InternalError naming the failed call.
  void check(CUresult result, const std::string& doing) const;
  [[nodiscard]] std::string describe(CUresult result) const;

 private:
  SharedLibrary library_;
};

}  // namespace fuseline::cuda
