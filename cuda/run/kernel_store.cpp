#if FUSELINE_HAS_CUDA

#include "cuda/run/kernel_store.h"

#include <fmt/format.h>

#include "cuda/compile/device_headers.h"
#include "model/error.h"

namespace fuseline::cuda {

namespace {

// wgmma and the bulk copy engine are Hopper's own; newer GPUs run the Ampere kernels.
SmTarget target_of(const DeviceInfo& info, const Compiler& compiler) {
  return info.major == 9 && compiler.makes(SmTarget::sm_90a) ? SmTarget::sm_90a : SmTarget::sm_80;
}

}  // namespace

std::string cache_key(const Compiler& compiler, SmTarget architecture, const Source& source) {
  const ToolkitVersion version = compiler.version();
  return fmt::format("cuda {}.{}\n{}\n{}", version.major, version.minor,
                     fmt::join(compiler.options(architecture), " "),
                     join_headers(source.name, source.text));
}

KernelStore::KernelStore(const Device& device, CubinCache cache)
    : device_(&device), cache_(std::move(cache)), target_(target_of(device.info(), compiler_)) {}

Module KernelStore::load(const Source& source) {
  const std::string key = cache_key(compiler_, target_, source);
  if (const auto cubin = cache_.find(key)) {
    try {
      return device_->load(*cubin, source.name);
    } catch (const InternalError&) {
      // Made by another toolkit's build of the same version, say: compile it here.
    }
  }
  const Compiled compiled = compiler_.compile(source, target_);
  ++compiled_;
  cache_.store(key, compiled.cubin);
  return device_->load(compiled.cubin, source.name);
}

}  // namespace fuseline::cuda

#endif
