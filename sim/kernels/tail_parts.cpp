#include "sim/kernels/tail_parts.h"

#include "sim/kernels/gemm_panels.h"

namespace fuseline {

bool adds_together(const GemmProblem& problem) {
  constexpr ElementSize kStored = 2;
  return !problem.library && problem.needs.only_stores && !problem.needs.rows_in_runs &&
         !problem.weight.quantised() && problem.epilogue.size() == 1 &&
         problem.epilogue.front().matrix.element == kStored;
}

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
  if (adds_together(problem)) return sums * 2;  // its part, and a share of every part
  return gives_sums_away(problem, tile, unit) ? sums : sums * (tile.tail_parts - 1);
}

void move_tail_sums(const GemmProblem& problem, const GemmTile& tile, const GemmUnit& unit,
                    L2Cache& cache) {
  // A matrix for each part, below each other; where one block adds up, for each but the last.
  const std::int64_t parts = tile.tail_parts - (adds_together(problem) ? 0 : 1);
  const std::int64_t stride = ceil_div(problem.m, kChunkEdge) * kChunkEdge;
  const CachedMatrix sums{problem.workspace_tensor, stride * parts, problem.n, 4};
  const std::int64_t steps = ceil_div(problem.k, tile.k);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * stride + unit.m_begin, end = part * stride + unit.m_end;
    if (unit.k_begin == part * steps / tile.tail_parts * tile.k)
      cache.write(sums, begin, end, unit.n_begin, unit.n_end);
    if (!gives_sums_away(problem, tile, unit))
      cache.read(sums, begin, end, unit.n_begin, unit.n_end);
  }
}

}  // namespace fuseline
