#if FUSELINE_HAS_CUDA

#include "cuda/run/scan_launch.h"

#include <array>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"
#include "cuda/run/stream_arguments.h"

namespace fuseline::cuda {

Launches prepare_scan(const LaunchContext& context, const ScanKernelSource& kernel,
                      const Program& program) {
  const auto& scan = std::get<ScanMainloop>(program.mainloop);
  const ScanShape& s = scan.shape;
  KernelFunction code = load_function(context, kernel.source, kernel.function);
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(narrow(kernel.blocks));
  shape.block[0] = static_cast<unsigned>(narrow(kernel.threads));
  shape.shared_bytes = code.shared_bytes;
  std::vector<std::vector<std::byte>> parameters;
  std::vector<DeviceBuffer> workspaces;
  parameters.push_back(stream_arguments(context, kernel.fields, workspaces));
  // ScanSpace of kernels/scan/walk.cuh.
  parameters.push_back(bytes_of(std::array{narrow(s.tokens), narrow(s.heads), narrow(s.head_width),
                                           narrow(s.state_width), narrow(s.heads / s.groups)}));
  Launches launches;
  launches.push_back(std::make_unique<KernelLaunch>(std::move(code.function), shape,
                                                    std::move(parameters), std::move(workspaces)));
  return launches;
}

}  // namespace fuseline::cuda

#endif
