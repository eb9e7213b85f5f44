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

std::string other_card(const Gpu& named, const DeviceInfo& device, const std::vector<Gpu>& known) {
  if (named.sm_count != device.multiprocessors) {
    return fmt::format("{} has {} SMs, and this {} has {}", named.title, named.sm_count,
                       device.name, device.multiprocessors);
  }
  // Cards of one chip differ in memory: an H200 holds 1.8 times as much as an H100.
  const double ratio = named.hbm_capacity.as_double() / device.memory.as_double();
  if (ratio < 0.8 || ratio > 1.25) {
    std::string text = fmt::format("{} has {:.0f} GB of memory, and this {} has {:.0f}",
                                   named.title, named.hbm_capacity.as_double() * 1e-9, device.name,
                                   device.memory.as_double() * 1e-9);
    try {
      text += "; --gpu " + known_gpu(device, known).name + " describes it";
    } catch (const InputError&) {
      return text;  // no shipped description fits
    }
    return text;
  }
  return {};
}

}  // namespace fuseline::cuda
