#include "sim/kernels/chained_steps.h"

#include <algorithm>

namespace fuseline {

ChainedSteps chained_steps_of(const Program& program) {
  ChainedSteps steps;
  for (const Primitive& p : program.body) {
    const TileDemands::Chain chain = p.demands().chain;
    steps.loads += chain.loads;
    steps.choices += chain.choices;
    steps.searches += chain.searches;
    if (chain.searches > 0) steps.rows = std::min(steps.rows, chain.rows);
  }
  return steps;
}

Seconds time_of_chain(const StreamKernel& kernel, const Gpu& gpu) {
  const StreamConstants& c = gpu.constants.stream;
  const ChainedSteps& steps = kernel.chained;
  Seconds time = static_cast<double>(steps.loads) * c.dependent_load +
                 static_cast<double>(steps.choices) * c.choice_step;
  if (steps.searches == 0) return time;
  constexpr std::int64_t kLanes = 32, kColumnsOfWarp = 32 * 8;
  const std::int64_t warps =
      ceil_div(kernel.rows, steps.rows) * ceil_div(kernel.cols, kColumnsOfWarp);
  const std::int64_t there = gpu.sm_count * (gpu.max_threads_per_sm / kLanes);
  const double turns = static_cast<double>(warps) / static_cast<double>(there);
  time += static_cast<double>(steps.searches) * std::max(1.0, turns) * c.search_step;
  return time;
}

}  // namespace fuseline
