#if FUSELINE_HAS_CUDA

#include "cuda/driver/driver_calls.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

// cuda.h names the current version of some functions by macro (cuMemAlloc is cuMemAlloc_v2); the
// library's symbol is the macro's expansion.
#define FUSELINE_NAME(function) FUSELINE_TEXT(function)
#define FUSELINE_TEXT(function) #function
#define FUSELINE_LOAD(member, function) library_->load(member, FUSELINE_NAME(function))

DriverCalls::DriverCalls()
    : library_(std::in_place, std::vector<std::string>{"libcuda.so.1", "libcuda.so"},
               "no NVIDIA driver on this machine, so nothing can be measured here") {
  FUSELINE_LOAD(init, cuInit);
  FUSELINE_LOAD(driver_version, cuDriverGetVersion);
  FUSELINE_LOAD(error_name, cuGetErrorName);
  FUSELINE_LOAD(error_string, cuGetErrorString);
  FUSELINE_LOAD(device_count, cuDeviceGetCount);
  FUSELINE_LOAD(device_get, cuDeviceGet);
  FUSELINE_LOAD(device_name, cuDeviceGetName);
  FUSELINE_LOAD(device_attribute, cuDeviceGetAttribute);
  FUSELINE_LOAD(device_memory, cuDeviceTotalMem);
  FUSELINE_LOAD(retain_context, cuDevicePrimaryCtxRetain);
  FUSELINE_LOAD(release_context, cuDevicePrimaryCtxRelease);
  FUSELINE_LOAD(set_context, cuCtxSetCurrent);
  FUSELINE_LOAD(memory_info, cuMemGetInfo);
  FUSELINE_LOAD(allocate, cuMemAlloc);
  FUSELINE_LOAD(free, cuMemFree);
  FUSELINE_LOAD(fill_bytes, cuMemsetD8);
  FUSELINE_LOAD(fill_words, cuMemsetD32);
  FUSELINE_LOAD(fill_bytes_async, cuMemsetD8Async);
  FUSELINE_LOAD(upload, cuMemcpyHtoD);
  FUSELINE_LOAD(download, cuMemcpyDtoH);
  FUSELINE_LOAD(load_module, cuModuleLoadData);
  FUSELINE_LOAD(unload_module, cuModuleUnload);
  FUSELINE_LOAD(get_function, cuModuleGetFunction);
  FUSELINE_LOAD(get_global, cuModuleGetGlobal);
  FUSELINE_LOAD(set_function_attribute, cuFuncSetAttribute);
  FUSELINE_LOAD(blocks_at_once, cuOccupancyMaxActiveBlocksPerMultiprocessor);
  FUSELINE_LOAD(launch, cuLaunchKernelEx);
  FUSELINE_LOAD(create_stream, cuStreamCreate);
  FUSELINE_LOAD(destroy_stream, cuStreamDestroy);
  FUSELINE_LOAD(synchronize_stream, cuStreamSynchronize);
  FUSELINE_LOAD(query_stream, cuStreamQuery);
  FUSELINE_LOAD(begin_capture, cuStreamBeginCapture);
  FUSELINE_LOAD(end_capture, cuStreamEndCapture);
  FUSELINE_LOAD(instantiate_graph, cuGraphInstantiateWithFlags);
  FUSELINE_LOAD(launch_graph, cuGraphLaunch);
  FUSELINE_LOAD(destroy_graph, cuGraphDestroy);
  FUSELINE_LOAD(destroy_graph_exec, cuGraphExecDestroy);
  FUSELINE_LOAD(create_event, cuEventCreate);
  FUSELINE_LOAD(record_event, cuEventRecord);
  FUSELINE_LOAD(record_event_with_flags, cuEventRecordWithFlags);
  FUSELINE_LOAD(synchronize_event, cuEventSynchronize);
  FUSELINE_LOAD(elapsed_time, cuEventElapsedTime);
  FUSELINE_LOAD(destroy_event, cuEventDestroy);
#if CUDA_VERSION >= 12000
  FUSELINE_LOAD(encode_tensor_map, cuTensorMapEncodeTiled);
  FUSELINE_LOAD(clusters_at_once, cuOccupancyMaxActiveClusters);
#endif
}

#undef FUSELINE_LOAD
#undef FUSELINE_TEXT
#undef FUSELINE_NAME

std::string DriverCalls::describe(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(result, &name) != CUDA_SUCCESS || name == nullptr) name = "unknown error";
  if (error_string(result, &text) != CUDA_SUCCESS || text == nullptr) text = "";
  return fmt::format("{} ({})", text, name);
}

void DriverCalls::check(CUresult result, const std::string& doing) const {
  if (result != CUDA_SUCCESS)
    throw InternalError(fmt::format("CUDA, {}: {}", doing, describe(result)));
}

}  // namespace fuseline::cuda

#endif
