#include "sim/kernels/place_search.h"

#include <algorithm>

namespace fuseline {

std::int64_t search_steps_of(const Program& program) {
  std::int64_t steps = 0;
  for (const Primitive& p : program.body)
    if (const auto search = p.demands().search) steps += ceil_div(search->numbers, search->at_once);
  return steps;
}

Seconds search_time(const StreamKernel& kernel, const Gpu& gpu) {
  if (kernel.search_steps == 0) return {};
  constexpr std::int64_t kLanes = 32, kColumnsOfWarp = 32 * 8, kRowsOfWarp = 4;
  const std::int64_t warps =
      ceil_div(kernel.rows, kRowsOfWarp) * ceil_div(kernel.cols, kColumnsOfWarp);
  const std::int64_t there = gpu.sm_count * (gpu.max_threads_per_sm / kLanes);
  const double turns = static_cast<double>(warps) / static_cast<double>(there);
  return static_cast<double>(kernel.search_steps) * std::max(1.0, turns) *
         gpu.constants.stream.search_step;
}

}  // namespace fuseline
