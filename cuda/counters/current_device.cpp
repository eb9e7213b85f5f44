#include "cuda/counters/current_device.h"

#if FUSELINE_HAS_CUDA

#include <cuda.h>

#include <array>

#include "base/error.h"
#include "cuda/compile/shared_library.h"

namespace fuseline::cuda {

std::optional<CurrentDevice> current_device() {
  try {
    const SharedLibrary driver({"libcuda.so.1", "libcuda.so"}, "no NVIDIA driver");
    decltype(&cuCtxGetDevice) device_of_context = nullptr;
    decltype(&cuCtxGetCurrent) current_context = nullptr;
    decltype(&cuDeviceGetPCIBusId) bus_of_device = nullptr;
    driver.load(device_of_context, "cuCtxGetDevice");
    driver.load(current_context, "cuCtxGetCurrent");
    driver.load(bus_of_device, "cuDeviceGetPCIBusId");
    CUcontext context = nullptr;
    CUdevice device = 0;
    std::array<char, 32> bus{};
    if (current_context(&context) != CUDA_SUCCESS || context == nullptr ||
        device_of_context(&device) != CUDA_SUCCESS ||
        bus_of_device(bus.data(), static_cast<int>(bus.size()), device) != CUDA_SUCCESS)
      return std::nullopt;
    return CurrentDevice{device, bus.data(), context};
  } catch (const MissingError&) {
    return std::nullopt;
  }
}

}  // namespace fuseline::cuda

#else

namespace fuseline::cuda {

std::optional<CurrentDevice> current_device() { return std::nullopt; }

}  // namespace fuseline::cuda

#endif
