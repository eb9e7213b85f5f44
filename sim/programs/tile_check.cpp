#include "sim/programs/tile_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "model/programs/legality.h"
#include "sim/gpu/plan_target.h"
#include "sim/kernels/epilogue_needs.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_problem.h"
#include "sim/kernels/program_streams.h"

namespace fuseline {

namespace {

// Two warp groups compute a tile of 128 rows or more, one a smaller one.
std::int64_t threads_of(const GemmTile& tile) { return tile.m * tile.n >= 128 * 128 ? 256 : 128; }

}  // namespace

std::vector<Diagnosis> check_tiles(const ProgramFile& file, const Gpu& gpu) {
  std::vector<Diagnosis> found;
  const Target target = plan_target(gpu);
  for (std::size_t k = 0; k < file.plan.kernels.size(); ++k) {
    const Kernel& kernel = file.plan.kernels[k];
    if (kernel.implementation != Implementation::epilogue_gemm) continue;
    for (std::size_t i = 0; i < kernel.phases.size() && i < file.places[k].size(); ++i) {
      const Program& program = kernel.phases[i];
      if (!std::holds_alternative<GemmMainloop>(program.mainloop)) continue;
      const EpilogueNeeds needs = epilogue_needs(program, file.plan.graph);
      const auto& menu = gpu.architecture->tiles.own;
      const bool any = std::ranges::any_of(menu, [&](const GemmTile& tile) {
        return epilogue_has_tile(needs, tile, has_feature(gpu, Feature::bulk_copy),
                                 target.shared_bytes_per_block);
      });
      if (any) continue;
      found.push_back(diagnosis_at(
          file, file.places[k][i].mainloop, "tile",
          fmt::format(
              "no tile of {} has room for this epilogue: its values take {} registers of a "
              "thread at a time, it loads {} tile{} in a slab, and groups of {} columns lie "
              "in one tile; a thread block has {} KiB of shared memory",
              gpu.name, needs.live_registers, needs.tile_loads, needs.tile_loads == 1 ? "" : "s",
              needs.column_group, target.shared_bytes_per_block / 1024),
          "fewer loads and values that live at a time, or two programs"));
    }
  }
  return found;
}

TileBudget tile_budget(const Plan& plan, const Program& program, const Gpu& gpu) {
  TileBudget b;
  b.tile = choose_tile(gemm_problem_of(program, AddressMap(plan), false), gpu);
  const EpilogueNeeds needs = epilogue_needs(program, plan.graph);
  b.accumulator_registers = b.tile.m * b.tile.n / threads_of(b.tile);
  b.value_registers = needs.live_registers;
  b.stage_bytes = b.tile.stages * (b.tile.m + b.tile.n) * b.tile.k * 2;
  b.epilogue_bytes = needs.tile_loads * b.tile.m * 64 * 2;
  b.shared_bytes_per_block = plan_target(gpu).shared_bytes_per_block;
  return b;
}

}  // namespace fuseline
