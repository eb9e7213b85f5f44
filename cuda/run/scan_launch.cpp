#if FUSELINE_HAS_CUDA

#include "cuda/run/scan_launch.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/error.h"
#include "cuda/run/kernel_function.h"
#include "cuda/run/parameters.h"
#include "cuda/run/stream_arguments.h"

namespace fuseline::cuda {

namespace {

// ScanSpace of kernels/scan/walk.cuh.
std::array<std::int32_t, 5> space_of(const ScanShape& s) {
  return {narrow(s.tokens), narrow(s.heads), narrow(s.head_width), narrow(s.state_width),
          narrow(s.heads / s.groups)};
}

// ScanGradientSpace of kernels/scan/gradient.cuh.
struct GradientParameter {
  std::array<std::int32_t, 5> scan;
  std::int32_t batch, piece;
  std::uint64_t states, keys, rates;
};

// Floats that thread blocks leave in memory: states ahead of segments, and parts of dk and dq and
// of the rates' gradients.
struct GradientWork {
  std::int64_t states, keys, rates;
};
GradientWork work_of(const ScanMainloop& scan, const ScanGradientLayout& l) {
  const ScanShape& s = scan.shape;
  const std::int64_t blocks = scan_gradient_blocks(scan, l);
  return {blocks * scan_segments(scan) * l.state_numbers(), blocks * 2 * s.tokens * s.state_width,
          s.batch * s.heads * scan.rates->cols};
}

// The walk, and what adds up.
Launches prepare_gradient(const LaunchContext& context, const ScanKernelSource& kernel,
                          const ScanMainloop& scan) {
  const ScanShape& s = scan.shape;
  const GradientWork work = work_of(scan, *kernel.gradient);
  const Bytes size(4 * (work.states + work.keys + work.rates));
  std::vector<DeviceBuffer> workspaces, none;
  GradientParameter space{.scan = space_of(s),
                          .batch = narrow(s.batch),
                          .piece = narrow(s.kept_tokens(scan.has_rates_of_columns())),
                          .states = 0,
                          .keys = 0,
                          .rates = 0};
  space.states = workspaces.emplace_back(context.device.allocate(size)).address();
  space.keys = space.states + static_cast<std::uint64_t>(4 * work.states);
  space.rates = space.keys + static_cast<std::uint64_t>(4 * work.keys);
  const auto arguments = [&](std::vector<DeviceBuffer>& memory) {
    KernelParameters all;
    all.push_back(stream_arguments(context, kernel.fields, memory));
    all.push_back(bytes_of(space));
    return all;
  };
  KernelFunction walk = load_function(context, kernel.source, kernel.function);
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(narrow(kernel.blocks));
  shape.block[0] = static_cast<unsigned>(narrow(kernel.threads));
  shape.shared_bytes = walk.shared_bytes;
  LaunchShape sums;
  const std::int64_t numbers =
      2 * s.batch * s.tokens * s.groups * s.state_width + s.heads * scan.rates->cols;
  sums.grid[0] = static_cast<unsigned>(narrow(ceil_div(numbers, scan_sum_threads)));
  sums.block[0] = static_cast<unsigned>(scan_sum_threads);
  Function add = context.store.load(kernel.source).function(kernel.function + "_sums", 0);
  Launches launches;
  auto parameters = arguments(workspaces);
  add_launch(launches, std::move(walk.function), shape, std::move(parameters),
             std::move(workspaces));
  auto same = arguments(none);
  add_launch(launches, std::move(add), sums, std::move(same), std::move(none));
  return launches;
}

}  // namespace

Launches prepare_scan(const LaunchContext& context, const ScanKernelSource& kernel,
                      const Program& program) {
  const auto& scan = std::get<ScanMainloop>(program.mainloop);
  if (kernel.gradient) return prepare_gradient(context, kernel, scan);
  KernelFunction code = load_function(context, kernel.source, kernel.function);
  LaunchShape shape;
  shape.grid[0] = static_cast<unsigned>(narrow(kernel.blocks));
  shape.block[0] = static_cast<unsigned>(narrow(kernel.threads));
  shape.shared_bytes = code.shared_bytes;
  KernelParameters parameters;
  std::vector<DeviceBuffer> workspaces;
  parameters.push_back(stream_arguments(context, kernel.fields, workspaces));
  parameters.push_back(bytes_of(space_of(scan.shape)));
  return one_launch(std::move(code.function), shape, std::move(parameters), std::move(workspaces));
}

}  // namespace fuseline::cuda

#endif
