#include "sim/kernels/column_walk.h"

#include <algorithm>

#include "base/units.h"

namespace fuseline {

ColumnWalk walk_columns(const StreamKernel& kernel, double missing, const Gpu& gpu) {
  if (kernel.columns.threads == 0) return {};
  constexpr std::int64_t kResidentThreads =
      1024;                              // on a multiprocessor: each has up to 64 registers
  constexpr double kMostThreads = 1024;  // of a thread block
  const StreamConstants& c = gpu.constants.stream;
  const ColumnThreads& shared = kernel.columns;
  const std::int64_t blocks = column_blocks(shared, kernel.rows, kernel.cols);
  const std::int64_t on_sm = std::max<std::int64_t>(1, kResidentThreads / shared.threads);
  const auto waves = static_cast<double>(ceil_div(blocks, gpu.sm_count * on_sm));
  const std::int64_t partials =
      kernel.column_sums.partials *
      (shared.inner_rows == 0 ? 1 : ceil_div(shared.block_rows, shared.inner_rows));
  const auto rows = static_cast<double>(kernel.column_sums.rows);
  const double all = static_cast<double>(kernel.column_sums.vectors + partials) + rows;
  // The constants are those of the largest thread block: its warps are joined one by one.
  const double warps = static_cast<double>(shared.threads) / kMostThreads;
  const Seconds trees = warps * (all * c.column_tree + rows * c.column_row_store);
  const Seconds start = c.row_start + c.resident_row_steps * c.row_step;
  const Seconds steps = static_cast<double>(column_steps(shared) * kernel.column_terms) *
                        (1 + c.miss_wait * missing) * c.column_step;
  return {waves * steps, waves * (start + trees)};
}

}  // namespace fuseline
