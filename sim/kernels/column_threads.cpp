#include "sim/kernels/column_threads.h"

#include <algorithm>
#include <bit>
#include <variant>

#include "base/error.h"
#include "base/units.h"
#include "model/primitives/primitives.h"
#include "sim/kernels/row_threads.h"

namespace fuseline {

namespace {

// About the multiprocessors of an H200.
constexpr std::int64_t kFewColumnBlocks = 128;

template <class Statement>
bool any(const Program& program, const Statement& statement) {
  return std::ranges::any_of(program.body, statement);
}
template <class Statement>
std::int64_t count(const Program& program, const Statement& statement) {
  return std::ranges::count_if(program.body, statement);
}

bool reduces_rows(const Primitive& p) { return p.demands().whole_rows; }
bool reduces_columns(const Primitive& p) { return p.demands().whole_columns; }
bool reduces_sequences(const Primitive& p) { return p.demands().rows_of_tile > 0; }

bool leaves_partials(const Program& program, Axis along) {
  return any(program, [&](const Primitive& p) {
    return std::ranges::any_of(p.accesses(), [&](const Access& a) {
      return a.reach == Reach::partials && a.along == along;
    });
  });
}

}  // namespace

bool sums_columns(const Program& program) {
  if (!std::holds_alternative<StreamMainloop>(program.mainloop) || any(program, reduces_rows))
    return false;
  return leaves_partials(program, Axis::cols) || any(program, reduces_columns) ||
         any(program, reduces_sequences);
}

ColumnThreads column_threads(const Program& program, std::int64_t rows, std::int64_t cols) {
  const bool blocks = leaves_partials(program, Axis::cols);
  const bool row_partials = leaves_partials(program, Axis::rows);
  const bool odd = has_odd_groups(program);
  ColumnThreads s;
  const std::int64_t loads = loaded_tiles(program);
  std::int64_t tokens = 0;  // of the sequences whose rows are summed
  for (const Primitive& p : program.body) tokens = std::max(tokens, p.demands().rows_of_tile);
  const bool whole = any(program, reduces_columns);
  if (blocks && !whole && tokens == 0) {
    s.block_rows = partial_tile;
    s.lanes = std::max<std::int64_t>(16, lanes_of_groups(program));
    s.threads = 256;
    s.units = odd ? 1 : loads > 4 ? 2 : 4;
    return s;
  }
  // Thread blocks are as many as columns give; few of them take more threads and fewer columns.
  FUSELINE_ASSERT(!whole || tokens == 0 || tokens == rows,
                  program.name + ": sums of columns beside those of sequences");
  s.block_rows = whole ? rows : tokens;
  if (blocks) s.inner_rows = partial_tile;
  const std::int64_t vectors = ceil_div(cols, kUnitCols) * (rows / s.block_rows);
  s.lanes = row_partials ? 16 : vectors < 4 * kFewColumnBlocks ? 2 : 4;
  s.units = odd || loads > 2 ? 1 : loads > 1 || count(program, reduces_columns) > 1 ? 2 : 4;
  s.threads = vectors < 8 * kFewColumnBlocks ? 1024 : 256;
  // More numbers on the way down than the registers of 1,024 threads hold.
  if (column_sums(program).all() > 2) {
    s.lanes = row_partials ? 16 : 2;
    s.units = 1;
    s.threads = 256;
  }
  if (const int lanes = lanes_of_groups(program); lanes > s.lanes) {
    s.lanes = lanes;
    s.units = 1;
    s.threads = 512;
  }
  return s;
}

std::int64_t column_steps(const ColumnThreads& threads) {
  const std::int64_t step = threads.threads / threads.lanes * threads.units;
  if (threads.inner_rows == 0) return ceil_div(threads.block_rows, step);
  const std::int64_t walks = threads.block_rows / threads.inner_rows;
  return walks * ceil_div(threads.inner_rows, step) +
         ceil_div(threads.block_rows % threads.inner_rows, step);
}

std::int64_t column_blocks(const ColumnThreads& threads, std::int64_t rows, std::int64_t cols) {
  return ceil_div(cols, threads.lanes * kUnitCols) * ceil_div(rows, threads.block_rows);
}

ColumnSums column_sums(const Program& program) {
  ColumnSums sums;
  for (const Primitive& p : program.body) {
    if (reduces_columns(p) && !p.defines().empty()) ++sums.vectors;
    for (const Access& a : p.accesses()) {
      if (!a.store) continue;
      if (a.reach == Reach::partials && a.along == Axis::cols)
        sums.partials += p.uses().size() > 1 ? 2 : 1;
      else if (reduces_columns(p))
        sums.rows += a.operand.rows;
      else if (reduces_sequences(p))
        ++sums.rows;
    }
  }
  return sums;
}

bool has_odd_groups(const Program& program) {
  const auto odd = [](std::int64_t cols) { return cols % kUnitCols != 0; };
  if (any(program, [&](const Primitive& p) { return odd(p.demands().column_run); })) return true;
  const auto* rows = std::get_if<RowMainloop>(&program.mainloop);
  return rows != nullptr && rows->heads > 1 && odd(rows->cols);
}

int lanes_of_groups(const Program& program) {
  int lanes = 0;
  for (const Primitive& p : program.body)
    if (const auto* reduce = p.as<GroupReduce>())
      lanes = std::max(lanes, lanes_of_group(reduce->group));
  return lanes;
}

int lanes_of_group(std::int64_t group) {
  const std::int64_t lanes = group / kUnitCols;
  const bool fits = group % kUnitCols == 0 && lanes <= kThreadsOfWarp &&
                    std::has_single_bit(static_cast<std::uint64_t>(lanes));
  return fits ? static_cast<int>(lanes) : 0;
}

}  // namespace fuseline
