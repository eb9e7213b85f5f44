#include "sim/kernels/tail_parts.h"

#include "sim/kernels/gemm_panels.h"

namespace fuseline {

bool is_tail_part(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit) {
  return tile.tail_parts > 1 && unit.k_end - unit.k_begin < problem.k;
}

bool gives_sums_away(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit) {
  return is_tail_part(problem, tile, unit) && unit.k_end < problem.k;
}

Bytes tail_sum_bytes(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit) {
  if (!is_tail_part(problem, tile, unit)) return {};
  const std::int64_t blocks =
      ceil_div(unit.m_end - unit.m_begin, tile.m) * ceil_div(unit.n_end - unit.n_begin, tile.n);
  const Bytes sums(blocks * tile.m * tile.n * 4);
  return gives_sums_away(problem, tile, unit) ? sums : sums * (tile.tail_parts - 1);
}

void move_tail_sums(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit,
                    L2Cache& cache) {
  // A matrix for each part but the last, below each other.
  const std::int64_t stride = ceil_div(problem.m, kChunkEdge) * kChunkEdge;
  const CachedMatrix sums{problem.workspace_tensor, stride * (tile.tail_parts - 1), problem.n, 4};
  const std::int64_t steps = ceil_div(problem.k, tile.k);
  for (std::int64_t part = 0; part < tile.tail_parts - 1; ++part) {
    const std::int64_t base = part * stride;
    if (!gives_sums_away(problem, tile, unit))
      cache.read(sums, base + unit.m_begin, base + unit.m_end, unit.n_begin, unit.n_end);
    else if (unit.k_begin == part * steps / tile.tail_parts * tile.k)
      cache.write(sums, base + unit.m_begin, base + unit.m_end, unit.n_begin, unit.n_end);
  }
}

}  // namespace fuseline
