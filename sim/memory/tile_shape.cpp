#include "sim/memory/tile_shape.h"

#include <algorithm>
#include <numeric>
#include <variant>
#include <vector>

#include "model/primitives/values.h"

namespace fuseline {
namespace {

// Columns of the index space that must lie in one tile: pairs, groups of heads. A primitive counts
// them in columns of the value that it groups, one of which may be made of two of the space.
std::int64_t column_group(const Program& program) {
  if (std::ranges::all_of(program.body,
                          [](const Primitive& p) { return p.demands().column_group == 1; }))
    return 1;
  const ValueAnalysis values = analyse(program);
  std::int64_t group = 1;
  for (const Primitive& p : program.body) {
    const std::vector<Value> uses = p.uses();
    const std::int64_t each = uses.empty() ? 1 : values.columns_each(uses.front());
    group = std::lcm(group, each * p.demands().column_group);
  }
  return group;
}

TileShape stream_tile(const Program& program, std::int64_t rows) {
  constexpr TileShape kUsual{16, 256};
  const std::int64_t group = column_group(program);
  const bool whole_columns = std::ranges::any_of(
      program.body, [](const Primitive& p) { return p.demands().whole_columns; });
  // Sums of rows of another tensor read the numbers of all its rows in every tile: fewer, taller
  // tiles.
  const bool gathers = std::ranges::any_of(program.body, [](const Primitive& p) {
    return std::ranges::any_of(p.accesses(),
                               [](const Access& a) { return a.reach == Reach::summed_rows; });
  });
  std::int64_t height = whole_columns ? rows : gathers ? 4 * kUsual.m : kUsual.m;
  for (const Primitive& p : program.body)
    if (p.demands().rows_of_tile > 0) height = p.demands().rows_of_tile;
  return {height, std::max(group, kUsual.n / group * group)};
}

}  // namespace

TileShape default_tile(const Program& program) {
  if (const auto* stream = std::get_if<StreamMainloop>(&program.mainloop))
    return stream_tile(program, stream->rows);
  if (const auto* row = std::get_if<RowMainloop>(&program.mainloop)) return {1, row->cols};
  if (const auto* scan = std::get_if<ScanMainloop>(&program.mainloop))
    return {std::min(scan->shape.chunk, scan->shape.tokens), scan->shape.head_width};
  return {128, 128};
}

}  // namespace fuseline
