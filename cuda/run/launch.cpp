#if FUSELINE_HAS_CUDA

#include "cuda/run/launch.h"

namespace fuseline::cuda {

KernelLaunch::KernelLaunch(Function function, const LaunchShape& shape,
                           std::vector<std::vector<std::byte>> parameters,
                           std::vector<DeviceBuffer> workspaces)
    : Launch(function.name()),
      function_(std::move(function)),
      shape_(shape),
      parameters_(std::move(parameters)),
      workspaces_(std::move(workspaces)) {}

void KernelLaunch::launch(Stream& stream) {
  std::vector<void*> arguments;
  for (std::vector<std::byte>& parameter : parameters_) arguments.push_back(parameter.data());
  stream.launch(function_, shape_, arguments);
}

}  // namespace fuseline::cuda

#endif
