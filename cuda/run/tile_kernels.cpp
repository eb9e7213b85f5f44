#if FUSELINE_HAS_CUDA

#include "cuda/run/tile_kernels.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/gpu/architecture.h"
#include "sim/kernels/codes_tile.h"
#include "sim/kernels/epilogue_needs.h"
#include "sim/kernels/gemm_library.h"
#include "sim/kernels/gemm_time.h"
#include "sim/kernels/program_streams.h"

namespace fuseline::cuda {

namespace {

bool same_config(const GemmConfig& a, const GemmConfig& b) {
  return a.codes == b.codes && a.columns == b.columns && a.tile_m == b.tile_m &&
         a.tile_n == b.tile_n && a.cluster == b.cluster && a.cluster_k == b.cluster_k &&
         a.tail_parts == b.tail_parts && a.a_rows == b.a_rows && a.schedule == b.schedule &&
         a.turned == b.turned;
}

}  // namespace

std::vector<TileKernel> tile_kernels(const Plan& plan, const Program& program, const Gpu& gpu,
                                     SmTarget target) {
  const GemmProblem problem = gemm_problem_of(program, AddressMap(plan), false);
  std::vector<GemmTile> tiles = {choose_tile(problem, gpu)};
  const EpilogueNeeds needs = epilogue_needs(program, plan.graph);
  const bool hopper = target == SmTarget::sm_90a;
  // The tiles of a mainloop stand in the file of the architecture that it was written for, which is
  // not the GPU's where the other mainloop runs on it.
  const auto written_for = load_architecture(hopper ? "hopper" : "ampere");
  for (const GemmTile& tile : written_for->tiles.own)
    if (!hopper || fits(needs, tile)) {
      tiles.push_back(tile);
      tiles.back().tail_parts = 1;
      if (const std::int64_t parts = hopper ? fastest_tail_parts(problem, tile, gpu) : 1;
          parts > 1) {
        tiles.push_back(tile);
        tiles.back().tail_parts = parts;
      }
    }
  if (const auto& gemm = std::get<GemmMainloop>(program.mainloop); gemm.weight.quantised())
    tiles.push_back(codes_tile(gemm.M, gemm.N, gemm.K, gemm.groups, gemm.weight, hopper));
  std::vector<TileKernel> found;
  for (const GemmTile& tile : tiles) {
    TileKernel c{.tile = tile,
                 .source = gemm_kernel_source(plan.graph, program, tile, target, plan.policy),
                 .name = {},
                 .predicted = quick_gemm_time(problem, tile, gpu)};
    const bool known = std::ranges::any_of(found, [&](const TileKernel& other) {
      return same_config(other.source.config, c.source.config);
    });
    const GemmConfig& config = c.source.config;
    c.name = fmt::format("{}, {}{}tile {} x {}, cluster {}, {} parts", program.name,
                         config.codes ? "dequantising " : "", config.turned ? "turned " : "",
                         config.tile_m, config.tile_n, config.cluster * config.cluster_k,
                         config.tail_parts);
    if (!known) found.push_back(std::move(c));
  }
  return found;
}

}  // namespace fuseline::cuda

#endif
