#include "sim/kernels/row_threads.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <variant>

#include "base/units.h"
#include "model/primitives/primitives.h"
#include "model/primitives/values.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostRowThreads = 1024;
// Above, few threads hold much of a row each, and others share the multiprocessor.
constexpr std::int64_t kWideRow = 8192;
// With fewer rows than this, two for every multiprocessor, more threads share one.
constexpr std::int64_t kFewRows = 264;

bool moves_tile(const Access& a) {
  return !a.store &&
         (a.reach == Reach::tile || a.reach == Reach::table || a.reach == Reach::part_columns ||
          a.reach == Reach::sequence_rows || a.reach == Reach::gathered_rows ||
          a.reach == Reach::rows_above || a.reach == Reach::rows_below);
}

bool loads_col_vectors(const Program& program) {
  return std::ranges::any_of(program.body, [](const Primitive& p) {
    return std::ranges::any_of(
        p.accesses(), [](const Access& a) { return !a.store && a.reach == Reach::col_numbers; });
  });
}

// The most tiles of numbers that a row's threads keep over one of its reductions.
std::int64_t tiles_kept(const Program& program) {
  const ValueAnalysis values = analyse(program);
  std::int64_t most = 0;
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    if (!program.body[i].demands().whole_rows) continue;
    const auto here = static_cast<std::ptrdiff_t>(i);
    most = std::max(most, std::ranges::count_if(values.shapes(), [&](const auto& v) {
                      const Lifetime& life = values.life(v.first);
                      return v.second.form == Form::tile && life.first_use >= 0 &&
                             life.first_use <= here && here < life.last_use;
                    }));
  }
  return most;
}

std::int64_t whole_warps(std::int64_t threads) {
  return ceil_div(threads, kThreadsOfWarp) * kThreadsOfWarp;
}

}  // namespace

std::int64_t loaded_tiles(const Program& program) {
  std::int64_t loads = std::ranges::count_if(program.body, [](const Primitive& p) {
    return std::ranges::any_of(p.accesses(), moves_tile);
  });
  for (const Primitive& p : program.body)
    for (const Access& a : p.accesses())
      if (a.reach == Reach::rows_above || a.reach == Reach::rows_below) loads += a.halo;
  return loads;
}

RowThreads row_threads(const Program& program, std::int64_t rows, std::int64_t cols,
                       bool column_partials) {
  const std::int64_t vectors = ceil_div(cols, kUnitCols);
  std::int64_t threads = 0;
  if (vectors <= kThreadsOfWarp)
    threads = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(vectors)));
  else if (rows < kFewRows)
    threads = whole_warps(vectors);
  else if (vectors <= (loaded_tiles(program) > 1 ? 4 : 8) * kThreadsOfWarp)
    threads = kThreadsOfWarp;  // no barrier
  else if (cols > kWideRow)
    threads = vectors <= 6 * 256 ? 256 : 512;
  else
    threads = whole_warps(
        ceil_div(vectors, tiles_kept(program) + (loads_col_vectors(program) ? 1 : 0) > 2 ? 2 : 4));
  if (column_partials) threads = std::max(threads, kThreadsOfWarp);
  const std::int64_t units = ceil_div(vectors, std::min(threads, kMostRowThreads));
  if (threads > kThreadsOfWarp) threads = whole_warps(ceil_div(vectors, units));
  return {threads, units};
}

bool walks_down_rows(const Program& program) {
  if (!std::holds_alternative<RowMainloop>(program.mainloop)) return false;
  bool sums_rows = false, leaves_columns = false;
  for (const Primitive& p : program.body) {
    sums_rows = sums_rows || p.demands().whole_rows;
    for (const Access& a : p.accesses())
      leaves_columns = leaves_columns || (a.reach == Reach::partials && a.along == Axis::cols);
  }
  return sums_rows && leaves_columns;
}

std::int64_t row_steps_of(const Program& program) {
  std::map<Value, std::int64_t> levels;
  std::set<std::int64_t> loads;  // levels of what was made so far where a tile is loaded
  std::int64_t reached = 0;
  for (const Primitive& p : program.body) {
    std::int64_t level = 0;
    for (const Value in : p.uses()) {
      const auto found = levels.find(in);
      if (found != levels.end()) level = std::max(level, found->second);
    }
    if (p.demands().whole_rows) ++level;
    reached = std::max(reached, level);
    for (const Value v : p.defines()) levels[v] = level;
    if (std::ranges::any_of(p.accesses(), moves_tile)) loads.insert(reached);
  }
  return reached + static_cast<std::int64_t>(loads.size());
}

}  // namespace fuseline
