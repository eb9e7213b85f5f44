#include "sim/executor/schedule.h"

#include <algorithm>
#include <variant>

#include "base/error.h"
#include "sim/kernels/attention_kernel.h"
#include "sim/kernels/chain_kernel.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline::executor {

namespace {

// Every thread block of a chain makes a tile of the first product over all of K, and has a part of
// the second product's K. All of them run at once.
void schedule_chain(const Kernel& kernel, const Program& phase, const ChainLayout& layout,
                    PhaseSchedule& s) {
  const auto* product = std::get_if<GemmMainloop>(&phase.mainloop);
  FUSELINE_ASSERT(product != nullptr, phase.name);
  const bool second = &phase == &kernel.phases[1];
  s.tile = second ? layout.second_tile() : layout.first_tile();
  s.splits = second ? layout.blocks : 1;
  s.gemm.units_per_wave = layout.blocks;
  for (std::int64_t i = 0; i < layout.blocks; ++i) {
    GemmUnit unit{.m_end = product->M, .n_end = product->N, .k_end = product->K};
    std::int64_t& begin = second ? unit.k_begin : unit.n_begin;
    std::int64_t& end = second ? unit.k_end : unit.n_end;
    const std::int64_t each = second ? layout.columns : layout.first_columns;
    begin = i * each;
    end = std::min(end, begin + each);
    s.gemm.units.push_back(unit);
  }
}

}  // namespace

PhaseSchedule schedule_phase(const Kernel& kernel, const Program& phase,
                             const AddressMap& addresses, const Gpu& gpu) {
  PhaseSchedule s;
  s.tile = default_tile(phase);
  if (const auto layout = chain_layout(kernel, gpu)) {
    schedule_chain(kernel, phase, *layout, s);
    return s;
  }
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
  if (kernel.phases.size() > 1) return 1 + beside;  // a chain joins its parts in the same launch
  const auto* attention = std::get_if<AttentionMainloop>(&kernel.phases.front().mainloop);
  const bool joined = attention != nullptr && joins_splits(attention->shape, kernel.implementation);
  return phases.front().launches + (phases.front().splits > 1 && !joined ? 1 : 0) + beside;
}

}  // namespace fuseline::executor
