#if FUSELINE_HAS_CUDA

#include "cuda/run/kernel_function.h"

#include <span>

#include <fmt/format.h>

#include "base/error.h"

namespace fuseline::cuda {

KernelFunction load_function(const LaunchContext& context, const Source& source,
                             const std::string& function) {
  const Module& module = context.store.load(source);
  std::int32_t bytes = 0;
  module.read_constant(function + "_shared_bytes", std::as_writable_bytes(std::span(&bytes, 1)));
  const auto shared = static_cast<unsigned>(bytes);
  const DeviceInfo& gpu = context.device.info();
  if (bytes > gpu.shared_per_block.value())
    throw MissingError(
        fmt::format("kernel {} needs {} bytes of shared memory in a thread block: {} has {}",
                    function, bytes, gpu.name, gpu.shared_per_block.value()));
  return {module.function(function, shared), shared};
}

}  // namespace fuseline::cuda

#endif
