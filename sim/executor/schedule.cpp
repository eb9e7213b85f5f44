#include "sim/executor/schedule.h"

#include <algorithm>
#include <variant>

#include "sim/kernels/attention_kernel.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline::executor {

PhaseSchedule schedule_phase(const Kernel& kernel, const Program& phase,
                             const AddressMap& addresses, const Gpu& gpu) {
  PhaseSchedule s;
  s.tile = default_tile(phase);
  if (const auto* attention = std::get_if<AttentionMainloop>(&phase.mainloop)) {
    const AttentionShape& a = attention->shape;
    s.tile = {kQueryTile, kKeyTile};
    if (splits_keys(a, kernel.implementation))
      s.splits = decode_grid(a, kernel.implementation, gpu).splits;
  } else if (std::holds_alternative<GemmMainloop>(phase.mainloop)) {
    GemmWalk gemm = gemm_walk(gemm_problem_of(kernel, phase, addresses), gpu);
    // Parts of a tile are one sum in fp32, as those of a cluster along K: they move no tensor.
    gemm.tile.tail_parts = 1;
    s.tile = {gemm.tile.m, gemm.tile.n};
    s.splits = gemm.tile.split_k;
    s.gemm = schedule_of(gemm);
    s.launches = gemm.problem.launches();
  }
  return s;
}

std::int64_t launches_of(const Kernel& kernel, const std::vector<PhaseSchedule>& phases) {
  const std::int64_t beside = std::ssize(kernel.beside);
  if (kernel.in_pieces) return beside;
  if (kernel.phases.size() > 1) return 1 + beside;
  return phases.front().launches + (phases.front().splits > 1 ? 1 : 0) + beside;
}

}  // namespace fuseline::executor
