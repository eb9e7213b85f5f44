#include "cuda/emit/stream_shape.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "cuda/emit/widths.h"
#include "model/primitives/group_reduce.h"
#include "model/primitives/sort_places.h"
#include "model/primitives/values.h"
#include "sim/kernels/column_threads.h"
#include "sim/kernels/row_threads.h"

namespace fuseline::cuda {

namespace {

// Above, few threads hold much of a row each, and others share the multiprocessor.
constexpr std::int64_t kSharedWideRow = 8192;
constexpr std::int64_t kFewWideRows = 264;

// Primitives of which the statement is true.
template <class Statement>
std::int64_t count(const Program& program, const Statement& statement) {
  return std::ranges::count_if(program.body, statement);
}
template <class Statement>
bool any(const Program& program, const Statement& statement) {
  return std::ranges::any_of(program.body, statement);
}
// Whether it moves anything of which the statement is true.
template <class Statement>
bool moves(const Primitive& p, const Statement& statement) {
  return std::ranges::any_of(p.accesses(), statement);
}

bool reduces_rows(const Primitive& p) { return p.demands().whole_rows; }
bool reduces_columns(const Primitive& p) { return p.demands().whole_columns; }
bool reduces_sequences(const Primitive& p) { return p.demands().rows_of_tile > 0; }
bool sums_other_rows(const Primitive& p) {
  return moves(p, [](const Access& a) { return a.reach == Reach::summed_rows; });
}

bool sorts(const Primitive& p) { return p.is<SortPlaces>(); }
// The primitive that counts its keys; null where there is none.
const SortPlaces* counting_sort(const Program& program) {
  for (const Primitive& p : program.body)
    if (const auto* sort = p.as<SortPlaces>(); sort != nullptr && sort->counts()) return sort;
  return nullptr;
}

bool moves_fp32(const Graph& graph, const Program& program) {
  const auto wide = [&](const Access& a) {
    return a.reach == Reach::tile && graph.tensor(a.operand.tensor).dtype == Dtype::fp32;
  };
  return any(program, [&](const Primitive& p) { return moves(p, wide); });
}

// The analysis of the program's values, and how threads share them.
class Values {
 public:
  explicit Values(const Program& program) : program_(program), known_(analyse(program)) {}

  StreamValues run() {
    if (std::holds_alternative<ScanMainloop>(program_.mainloop))
      values_[0] = {.form = known_.form(0), .cols = known_.width(0)};
    for (const Primitive& p : program_.body) add(p);
    for (const Primitive& p : program_.body)
      for (const ColumnRelation& r : p.relations())
        if (r.pairs) halve(r.to);
    for (bool changed = true; changed;) {
      changed = false;
      for (const Primitive& p : program_.body)
        if (p.demands().elementwise) changed |= share_width(p);
    }
    return std::move(values_);
  }

 private:
  void add(const Primitive& p) {
    const TileDemands demands = p.demands();
    StreamValue made;
    made.made = &p;
    made.after_columns = demands.whole_columns;
    for (const Value in : p.uses()) {
      made.level = std::max(made.level, values_.at(in).level);
      made.after_columns = made.after_columns || values_.at(in).after_columns;
    }
    if (demands.whole_rows) ++made.level;
    for (const Value v : p.defines()) {
      made.form = known_.form(v);
      made.cols = made.form == Form::per_row ? 0 : known_.width(v);
      values_[v] = made;
    }
  }
  // Values that pairs are mapped to have 4 columns where the pairs have 8.
  void halve(Value v) {
    values_.at(v).each = 4;
    halved_.insert(v);
  }
  bool share_width(const Primitive& p) {
    std::vector<Value> joined = p.uses();
    for (const Value v : p.defines()) joined.push_back(v);
    const bool half = std::ranges::any_of(joined, [&](Value v) { return halved_.contains(v); });
    if (!half) return false;
    bool changed = false;
    for (const Value v : joined) {
      if (values_.at(v).form == Form::per_row || halved_.contains(v)) continue;
      FUSELINE_ASSERT(values_.at(v).form == Form::tile,
                      "no vector or table meets what pairs are mapped to");
      halve(v);
      changed = true;
    }
    return changed;
  }

  const Program& program_;
  ValueAnalysis known_;
  StreamValues values_;
  std::set<Value> halved_;
};

// The most columns of a result that has a part of its operand's; 0: there is none.
std::int64_t widest_sum(const Program& program, std::int64_t cols) {
  std::int64_t widest = 0;
  for (const Primitive& p : program.body) {
    const std::vector<Value> made = p.defines();
    for (const ColumnRelation& r : p.relations())
      if (!r.pairs && r.den > r.num && std::ranges::find(made, r.to) != made.end())
        widest = std::max(widest, cols * r.num / r.den);
  }
  return widest;
}

void shape_rows(const Program& program, StreamShape& s, bool row_partials, bool col_partials) {
  s.loop = StreamLoop::rows;
  if (s.cols > widest_row) {
    s.walked = true;
    s.row_threads = s.block_threads = 256;
    s.units = s.odd ? 1 : 4;
    return;
  }
  const std::int64_t loads = loaded_tiles(program);
  const bool wide = s.cols > kSharedWideRow && s.rows >= kFewWideRows;
  // A thread block walks down the rows of a partial, one after the other.
  if (col_partials) s.inner_rows = partial_tile;
  const auto [threads, units] = row_threads(program, s.rows, s.cols, col_partials);
  s.row_threads = static_cast<int>(threads);
  s.units = static_cast<int>(units);
  if (threads <= kWarp && !col_partials) {
    s.block_threads = s.units > 4 ? 64 : 256;
    return;
  }
  // A row's threads wait for its sums: other blocks should share the multiprocessor, as many as
  // have registers enough. Left to itself, the compiler spills to make room for more.
  s.block_threads = s.row_threads;
  // What leaves partials keeps the row until it has stored it.
  int resident_threads = loads == 2 ? 640 : 768;
  if (row_partials) resident_threads = 512;
  if (wide) resident_threads = loads > 2 ? 256 : 512;
  // Few blocks have work: registers for the columns' sums matter more.
  if (col_partials) resident_threads = s.block_threads;
  s.resident_blocks = std::max(1, resident_threads / s.block_threads);
}

void shape_columns(const Program& program, StreamShape& s) {
  s.loop = StreamLoop::columns_down;
  const ColumnThreads shared = column_threads(program, s.rows, s.cols);
  s.block_rows = shared.block_rows;
  s.inner_rows = shared.inner_rows;
  s.lanes = static_cast<int>(shared.lanes);
  s.units = static_cast<int>(shared.units);
  s.block_threads = static_cast<int>(shared.threads);
}

void shape_tiles(const Graph& graph, const Program& program, StreamShape& s, bool row_partials) {
  s.loop = StreamLoop::tiles;
  const std::int64_t sums = widest_sum(program, s.cols);
  if (sums > 0) s.cols = sums;
  bool in_thread = true;
  for (const Primitive& p : program.body) {
    const std::int64_t distance = p.demands().pair_distance;
    if (distance == 0) continue;
    if (s.distance == 0) s.distance = distance;
    in_thread = in_thread && distance == s.distance;
  }
  const bool elsewhere = any(program, [](const Primitive& p) { return p.demands().other_columns; });
  if (s.odd || row_partials || !in_thread || elsewhere ||
      (s.distance > 0 && s.cols % (2 * s.distance) != 0))
    s.distance = 0;
  s.block_threads = 128;
  if (s.distance > 0) {
    s.units = 2;
    return;
  }
  const std::int64_t loads = loaded_tiles(program);
  const std::int64_t vectors = s.rows * ceil_div(s.cols, kVectorCols);
  // Found on an H200 (kernels/stream/README.md). Rows of fp32 are as long as two of 16 bits.
  if (s.odd || loads > 6 || sums > 0)
    s.units = 1;
  else if (moves_fp32(graph, program))
    s.units = loads < 2 ? 1 : 2;
  else
    s.units = loads > 2 ? 2 : 4;
  while (s.units > 1 && vectors / s.units < kBusyThreads) s.units /= 2;
  s.least_lanes = std::max(1, lanes_of_groups(program));
  if (row_partials) s.least_lanes = std::max(16, s.least_lanes);
  if (any(program, sums_other_rows)) s.least_lanes = 32;
  if (const SortPlaces* sort = counting_sort(program); sort != nullptr) {
    s.block_threads = static_cast<int>(SortPlaces::kCountingThreads);
    s.units = static_cast<int>(sort->rows_of_thread());
  } else if (any(program, sorts)) {
    // All lanes of a warp look for the places of the same keys.
    s.least_lanes = 32;
    s.units = 4;
  }
}

}  // namespace

StreamValues stream_values(const Program& program) { return Values(program).run(); }

StreamShape stream_shape(const Graph& graph, const Program& program, const StreamValues& values) {
  StreamShape s;
  if (const auto* m = std::get_if<RowMainloop>(&program.mainloop)) {
    s.rows = m->rows;
    s.cols = m->cols;
    s.heads = m->heads;
    s.tokens = m->tokens;
  } else if (const auto* scan = std::get_if<ScanMainloop>(&program.mainloop)) {
    s.rows = scan->x.rows;
    s.cols = scan->x.cols;
    s.odd = has_odd_groups(program);
    return s;  // scan_shape.h says the rest
  } else {
    const auto* stream = std::get_if<StreamMainloop>(&program.mainloop);
    FUSELINE_ASSERT(stream != nullptr, program.name + " is no stream");
    s.rows = stream->rows;
    s.cols = stream->cols;
  }
  s.odd = has_odd_groups(program);
  bool col_partials = false;
  bool row_partials = false;
  bool half_partials = false;
  for (const Primitive& p : program.body) {
    for (const Access& a : p.accesses()) {
      if (a.reach != Reach::partials) continue;
      (a.along == Axis::cols ? col_partials : row_partials) = true;
      half_partials =
          half_partials || (a.along == Axis::rows && values.at(p.uses().front()).each == 4);
    }
  }
  const bool columns =
      col_partials || any(program, reduces_columns) || any(program, reduces_sequences);
  if (any(program, reduces_rows) || s.heads > 1) {
    const bool whole = any(program, reduces_columns) || any(program, reduces_sequences);
    FUSELINE_ASSERT(
        !whole && !((row_partials || col_partials) && (s.heads > 1 || s.cols > widest_row)),
        program.name + ": reductions of tiles in a row mainloop");
    shape_rows(program, s, row_partials, col_partials);
  } else if (columns) {
    shape_columns(program, s);
  } else {
    shape_tiles(graph, program, s, row_partials);
    if (half_partials) s.least_lanes = 32;
  }
  return s;
}

bool rows_hold_groups(std::int64_t heads, std::int64_t cols, std::int64_t group) {
  return heads == 1 && cols <= widest_row && cols % group == 0 && lanes_of_group(group) > 0;
}

bool pairs_in_thread(const StreamShape& shape, std::int64_t distance) {
  return distance == 1 || distance == shape.distance;
}

}  // namespace fuseline::cuda
