#include "cuda/run/known_gpu.h"

#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

DeviceInfo device_here() {
#if FUSELINE_HAS_CUDA
  return Device().info();
#else
  throw MissingError(
      "this fuseline was built without the CUDA toolkit: install CUDA 12 or 13 (Ampere and Hopper) "
      "or Debian's nvidia-cuda-toolkit (non-free; Ampere only) and build again. predict, verify, "
      "explain --cuda and compare need no GPU");
#endif
}

Gpu known_gpu(const DeviceInfo& device, const std::vector<Gpu>& known) {
  const std::string capability = fmt::format("{}.{}", device.major, device.minor);
  const Gpu* best = nullptr;
  double best_distance = 0;
  for (const Gpu& gpu : known) {
    if (gpu.compute_capability != capability || gpu.sm_count != device.multiprocessors) continue;
    const bool named = gpu.title.find(device.name) != std::string::npos;
    const double distance =
        named ? -1.0 : std::abs(std::log(gpu.hbm_capacity.as_double() / device.memory.as_double()));
    if (best == nullptr || distance < best_distance) {
      best = &gpu;
      best_distance = distance;
    }
  }
  if (best == nullptr)
    throw InputError({.file = "command line",
                      .field = "--gpu",
                      .message = fmt::format("no description is known of this {} (compute "
                                             "capability {}, {} SMs)",
                                             device.name, capability, device.multiprocessors),
                      .allowed = "--gpu with the nearest of `fuseline list gpus`, or a TOML file"});
  return *best;
}

Gpu known_gpu(const DeviceInfo& device) {
  std::vector<Gpu> known;
  for (const std::string& name : gpu_names()) known.push_back(load_gpu(name));
  return known_gpu(device, known);
}

}  // namespace fuseline::cuda
