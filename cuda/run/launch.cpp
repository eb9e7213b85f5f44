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
  stream.launch(function_, shape_, arguments, overlaps_);
}

void add_launch(Launches& launches, Function function, const LaunchShape& shape,
                KernelParameters parameters, std::vector<DeviceBuffer> workspaces) {
  launches.push_back(std::make_unique<KernelLaunch>(std::move(function), shape,
                                                    std::move(parameters), std::move(workspaces)));
}

Launches one_launch(Function function, const LaunchShape& shape, KernelParameters parameters,
                    std::vector<DeviceBuffer> workspaces) {
  Launches launches;
  add_launch(launches, std::move(function), shape, std::move(parameters), std::move(workspaces));
  return launches;
}

}  // namespace fuseline::cuda

#endif
