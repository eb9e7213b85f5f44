#include "cuda/emit/stream_shape.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "sim/executor/tile_interpreter.h"

namespace fuseline::cuda {

namespace {

constexpr std::int64_t kVectorCols = 8;
constexpr std::int64_t kWarp = 32;
// Above, few threads hold much of a row each, and others share the multiprocessor.
constexpr std::int64_t kWideRow = 8192;
// Wider rows are walked along: 4 units of 8 columns in each of 512 threads are resident.
constexpr std::int64_t kWidestRow = 16384;
// Threads that hide the memory's latency: a quarter of what an H200 holds.
constexpr std::int64_t kBusyThreads = 65536;
// With fewer rows than this, two for every multiprocessor, more threads share one.
constexpr std::int64_t kFewRows = 264;
// About the multiprocessors of an H200.
constexpr std::int64_t kFewColumnBlocks = 128;

template <class P>
std::vector<const P*> all(const Program& program) {
  std::vector<const P*> found;
  for (const Primitive& primitive : program.body)
    if (const auto* p = std::get_if<P>(&primitive)) found.push_back(p);
  return found;
}

bool is_rotation(const PairMap& p) { return p.fn == PairFn::rope || p.fn == PairFn::rope_inverse; }

std::int64_t loaded_tiles(const Program& program) {
  return static_cast<std::int64_t>(all<LoadTile>(program).size() + all<LoadTable>(program).size() +
                                   all<LoadHalves>(program).size() + all<Gather>(program).size());
}

int has_col_vectors(const Program& program) {
  const auto vectors = all<LoadVector>(program);
  return std::ranges::any_of(vectors, [](const auto* v) { return v->axis == Axis::cols; }) ? 1 : 0;
}

// The most tiles of numbers that a row's threads keep over one of its reductions.
std::int64_t tiles_kept(const Program& program, const StreamValues& values) {
  std::map<Value, std::pair<std::size_t, std::size_t>> used;  // first and last
  for (std::size_t i = 0; i < program.body.size(); ++i)
    for (const Value v : executor::inputs_of(program.body[i]))
      if (values.at(v).form == StreamForm::tile) used.try_emplace(v, i, i).first->second.second = i;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    if (!std::holds_alternative<RowReduce>(program.body[i])) continue;
    most = std::max(most, std::ranges::count_if(used, [&](const auto& u) {
                      return u.second.first <= i && i < u.second.second;
                    }));
  }
  return most;
}

bool moves_fp32(const Graph& graph, const Program& program) {
  const auto wide = [&](const Operand& o) { return graph.tensor(o.tensor).dtype == Dtype::fp32; };
  return std::ranges::any_of(all<LoadTile>(program),
                             [&](const auto* p) { return wide(p->from); }) ||
         std::ranges::any_of(all<StoreTile>(program), [&](const auto* p) { return wide(p->to); });
}

class Values {
 public:
  explicit Values(const Program& program) : program_(program) {}

  StreamValues run() {
    for (const Primitive& p : program_.body) {
      made_ = &p;
      std::visit([this](const auto& q) { add(q); }, p);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const Primitive& p : program_.body)
        if (const auto* m = std::get_if<Map>(&p)) changed |= share_width(*m);
    }
    return std::move(values_);
  }

 private:
  StreamValue& define(Value v, StreamForm form, std::int64_t cols) {
    StreamValue& value = values_[v];
    value.form = form;
    value.cols = cols;
    value.made = made_;
    for (const Value in : executor::inputs_of(*made_)) {
      value.level = std::max(value.level, values_.at(in).level);
      value.after_columns = value.after_columns || values_.at(in).after_columns;
    }
    return value;
  }
  [[nodiscard]] std::int64_t heads() const {
    const auto* rows = std::get_if<RowMainloop>(&program_.mainloop);
    return rows == nullptr ? 1 : rows->heads;
  }
  // Values that pairs are mapped to have 4 columns where the pairs have 8.
  void halve(Value v) {
    values_.at(v).each = 4;
    halved_.insert(v);
  }
  bool share_width(const Map& m) {
    std::vector<Value> joined = m.in;
    joined.push_back(m.out);
    const bool half = std::ranges::any_of(joined, [&](Value v) { return halved_.contains(v); });
    if (!half) return false;
    bool changed = false;
    for (const Value v : joined) {
      if (values_.at(v).form == StreamForm::row || halved_.contains(v)) continue;
      FUSELINE_ASSERT(values_.at(v).form == StreamForm::tile,
                      "no vector or table meets what pairs are mapped to");
      halve(v);
      changed = true;
    }
    return changed;
  }

  void add(const LoadTile& p) { define(p.out, StreamForm::tile, p.from.cols / heads()); }
  void add(const LoadVector& p) {
    if (p.axis == Axis::rows)
      define(p.out, StreamForm::row, 0);
    else
      define(p.out, StreamForm::col, p.from.cols);
  }
  void add(const LoadTable& p) { define(p.out, StreamForm::table, p.from.cols); }
  void add(const Map& p) {
    bool rows = false, cols = false, tile = false;
    std::int64_t width = 0;
    for (const Value v : p.in) {
      const StreamValue& in = values_.at(v);
      rows = rows || in.form == StreamForm::row;
      cols = cols || in.form == StreamForm::col;
      tile = tile || in.form == StreamForm::tile;
      if (in.form != StreamForm::table) width = std::max(width, in.cols);
    }
    FUSELINE_ASSERT(rows || cols || tile, "tables are combined with tiles");
    define(p.out,
           tile || (rows && cols) ? StreamForm::tile
           : cols                 ? StreamForm::col
                                  : StreamForm::row,
           width);
  }
  void add(const PairMap& p) {
    const std::int64_t cols = values_.at(p.in.at(0)).cols;
    if (is_rotation(p)) {
      define(p.out.at(0), StreamForm::tile, cols);
      return;
    }
    FUSELINE_ASSERT(p.distance == 1, "gate and up are adjacent columns");
    define(p.out.at(0), StreamForm::tile, p.fn == PairFn::swiglu ? cols / 2 : cols);
    if (p.fn == PairFn::swiglu) halve(p.out[0]);
    if (p.fn == PairFn::swiglu_backward) {
      halve(p.in.at(1));
      define(p.out.at(1), StreamForm::tile, cols / 2);
      halve(p.out[1]);
    }
  }
  void add(const RowReduce& p) { ++define(p.out, StreamForm::row, 0).level; }
  void add(const ColumnReduce& p) {
    define(p.out, StreamForm::col, values_.at(p.in).cols).after_columns = true;
  }
  void add(const Columns& p) { define(p.out, StreamForm::tile, p.cols); }
  void add(const Mask& p) { define(p.out, StreamForm::tile, values_.at(p.in).cols); }
  void add(const LoadHalves& p) { define(p.out, StreamForm::tile, p.from.cols / 2); }
  void add(const ConcatHalves& p) {
    define(p.out, StreamForm::tile, values_.at(p.lower).cols + values_.at(p.upper).cols);
  }
  void add(const HeadSum& p) { define(p.out, StreamForm::tile, values_.at(p.in).cols / p.count); }
  void add(const Gather& p) { define(p.out, StreamForm::tile, p.from.cols); }
  void add(const GatherSum& p) { define(p.out, StreamForm::tile, p.from.cols); }
  void add(const OneHot& p) { define(p.out, StreamForm::tile, p.cols); }
  void add(const TileReduce&) {}
  void add(const OnlineLogSumExp&) {}
  void add(const StoreTile&) {}
  void add(const StoreVector&) {}

  const Program& program_;
  const Primitive* made_ = nullptr;
  StreamValues values_;
  std::set<Value> halved_;
};

bool has_odd_groups(const Program& program) {
  const auto odd = [](std::int64_t cols) { return cols % kVectorCols != 0; };
  for (const auto* p : all<PairMap>(program))
    if (p->distance > 1 && odd(p->distance)) return true;
  for (const auto* p : all<LoadHalves>(program))
    if (odd(p->group / 2)) return true;
  for (const auto* p : all<ConcatHalves>(program))
    if (odd(p->group / 2)) return true;
  for (const auto* p : all<HeadSum>(program))
    if (odd(p->width)) return true;
  for (const auto* p : all<Columns>(program))
    if (odd(p->begin)) return true;
  const auto* rows = std::get_if<RowMainloop>(&program.mainloop);
  return rows != nullptr && rows->heads > 1 && odd(rows->cols);
}

void shape_rows(const Program& program, const StreamValues& values, StreamShape& s) {
  s.loop = StreamLoop::rows;
  const std::int64_t vectors = ceil_div(s.cols, kVectorCols);
  const auto whole_warps = [](std::int64_t threads) { return ceil_div(threads, kWarp) * kWarp; };
  if (s.cols > kWidestRow) {
    s.walked = true;
    s.row_threads = s.block_threads = 256;
    s.units = s.odd ? 1 : 4;
    return;
  }
  const std::int64_t loads = loaded_tiles(program);
  const bool wide = s.cols > kWideRow && s.rows >= kFewRows;
  std::int64_t threads = 0;
  if (vectors <= kWarp)
    threads = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(vectors)));
  else if (s.rows < kFewRows)
    threads = whole_warps(vectors);
  else if (vectors <= (loads > 1 ? 4 : 8) * kWarp)
    threads = kWarp;  // no barrier
  else if (wide)
    threads = vectors <= 6 * 256 ? 256 : 512;
  else
    threads = whole_warps(
        ceil_div(vectors, tiles_kept(program, values) + has_col_vectors(program) > 2 ? 2 : 4));
  const std::int64_t units = ceil_div(vectors, std::min<std::int64_t>(threads, 1024));
  if (threads > kWarp) threads = whole_warps(ceil_div(vectors, units));
  s.row_threads = static_cast<int>(threads);
  s.units = static_cast<int>(units);
  if (threads <= kWarp) {
    s.block_threads = s.units > 4 ? 64 : 256;
    return;
  }
  // A row's threads wait for its sums: other blocks should share the multiprocessor, as many as
  // have registers enough. Left to itself, the compiler spills to make room for more.
  s.block_threads = s.row_threads;
  s.resident_blocks = std::max(1, (wide         ? (loads > 2 ? 256 : 512)
                                   : loads == 2 ? 640
                                                : 768) /
                                      s.block_threads);
}

void shape_columns(const Program& program, StreamShape& s, bool blocks, bool row_partials) {
  s.loop = StreamLoop::columns_down;
  const std::int64_t loads = loaded_tiles(program);
  if (blocks) {
    FUSELINE_ASSERT(all<ColumnReduce>(program).empty(),
                    program.name + ": column reductions beside partials of 128 rows");
    s.block_rows = partial_tile;
    s.lanes = 16;
    s.block_threads = 256;
    s.units = s.odd ? 1 : loads > 4 ? 2 : 4;
    return;
  }
  // Thread blocks are as many as columns give; few of them take more threads and fewer columns.
  s.block_rows = s.rows;
  const std::int64_t vectors = ceil_div(s.cols, kVectorCols);
  s.lanes = row_partials ? 16 : vectors < 4 * kFewColumnBlocks ? 2 : 4;
  s.block_threads = vectors < 8 * kFewColumnBlocks ? 1024 : 256;
  s.units = s.odd || loads > 2 ? 1 : loads > 1 || all<ColumnReduce>(program).size() > 1 ? 2 : 4;
}

void shape_tiles(const Graph& graph, const Program& program, StreamShape& s, bool row_partials) {
  s.loop = StreamLoop::tiles;
  const auto sums = all<HeadSum>(program);
  if (!sums.empty()) {
    std::int64_t widest = 0;
    for (const auto* sum : sums) widest = std::max(widest, s.cols / sum->count);
    s.cols = widest;
  }
  bool in_thread = true;
  for (const auto* p : all<PairMap>(program)) {
    if (p->distance == 1) continue;
    if (s.distance == 0) s.distance = p->distance;
    in_thread = in_thread && p->distance == s.distance;
  }
  if (s.odd || row_partials || !in_thread || (s.distance > 0 && s.cols % (2 * s.distance) != 0) ||
      !sums.empty() || !all<Columns>(program).empty() || !all<LoadHalves>(program).empty() ||
      !all<ConcatHalves>(program).empty() || !all<GatherSum>(program).empty())
    s.distance = 0;
  s.block_threads = 128;
  if (s.distance > 0) {
    s.units = 2;
    return;
  }
  const std::int64_t loads = loaded_tiles(program);
  const std::int64_t vectors = s.rows * ceil_div(s.cols, kVectorCols);
  // Found on an H200 (kernels/stream/README.md). Rows of fp32 are as long as two of 16 bits.
  if (s.odd || loads > 6 || !sums.empty())
    s.units = 1;
  else if (moves_fp32(graph, program))
    s.units = loads < 2 ? 1 : 2;
  else
    s.units = loads > 2 ? 2 : 4;
  while (s.units > 1 && vectors / s.units < kBusyThreads) s.units /= 2;
  if (row_partials) s.least_lanes = 16;
  if (!all<GatherSum>(program).empty()) s.least_lanes = 32;
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
  } else {
    const auto* stream = std::get_if<StreamMainloop>(&program.mainloop);
    FUSELINE_ASSERT(stream != nullptr, program.name + " is no stream");
    s.rows = stream->rows;
    s.cols = stream->cols;
  }
  s.odd = has_odd_groups(program);
  bool col_partials = false;
  bool row_partials = !all<OnlineLogSumExp>(program).empty();
  bool half_partials = false;
  for (const auto* t : all<TileReduce>(program)) {
    (t->axis == Axis::cols ? col_partials : row_partials) = true;
    half_partials = half_partials || (t->axis == Axis::rows && values.at(t->in).each == 4);
  }
  const bool columns = col_partials || !all<ColumnReduce>(program).empty();
  if (!all<RowReduce>(program).empty() || s.heads > 1) {
    FUSELINE_ASSERT(!columns && !row_partials,
                    program.name + ": reductions of tiles in a row mainloop");
    shape_rows(program, values, s);
  } else if (columns) {
    shape_columns(program, s, col_partials, row_partials);
  } else {
    shape_tiles(graph, program, s, row_partials);
    if (half_partials) s.least_lanes = 32;
  }
  return s;
}

bool pairs_in_thread(const StreamShape& shape, const PairMap& rotation) {
  return rotation.distance == 1 || rotation.distance == shape.distance;
}

}  // namespace fuseline::cuda
