#include "sim/memory/traffic.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <variant>

#include "model/operators/operator_table.h"

namespace fuseline {
namespace {

// Sums per tensor, in order of first use.
class Tally {
 public:
  explicit Tally(const Graph& graph) : graph_(graph) {}
  void load(const Operand& o, std::int64_t elements) { entry(o).loaded += bytes(o, elements); }
  void store(const Operand& o, std::int64_t elements) { entry(o).stored += bytes(o, elements); }
  void add(const RequestedBytes& r) {
    RequestedBytes& sum = entry(r.tensor);
    sum.loaded += r.loaded;
    sum.stored += r.stored;
  }
  std::vector<RequestedBytes> take() { return std::move(sums_); }

 private:
  Bytes bytes(const Operand& o, std::int64_t elements) const {
    return checked_product<Bytes>(elements, size_of(graph_.tensor(o.tensor).dtype));
  }
  RequestedBytes& entry(const Operand& o) { return entry(o.tensor); }
  RequestedBytes& entry(TensorId id) {
    for (RequestedBytes& r : sums_) {
      if (r.tensor == id) return r;
    }
    sums_.push_back({id, Bytes(), Bytes()});
    return sums_.back();
  }

  const Graph& graph_;
  std::vector<RequestedBytes> sums_;
};

std::int64_t elements(const Operand& o) { return checked_product<Bytes>(o.rows, o.cols).value(); }

// The index space [rows, cols] × batch in tiles, and the columns in which the primitives that
// follow run.
struct Tiling {
  std::int64_t rows = 1, cols = 1, batch = 1;
  TileShape tile;
  std::int64_t first_col = 0, end_col = 1;

  [[nodiscard]] std::int64_t row_tiles() const { return ceil_div(rows, tile.m) * batch; }
  [[nodiscard]] std::int64_t col_tiles() const {
    return ceil_div(end_col, tile.n) - first_col / tile.n;
  }
};

// Columns [begin, end) of the index space.
struct ColumnSpan {
  std::int64_t begin = 0, end = 0;
};

// Where the tiles lie that meet a table: those of each map's other operands.
std::map<Value, std::vector<ColumnSpan>> table_partners(const std::vector<Primitive>& body,
                                                        std::int64_t cols) {
  std::map<Value, std::vector<ColumnSpan>> tables;
  std::map<Value, ColumnSpan> spans;  // of tiles; others have all columns
  const auto meet = [&](const std::vector<Value>& in, Value out) {
    ColumnSpan span{0, cols};
    for (const Value v : in)
      if (spans.contains(v)) span = spans.at(v);
    spans[out] = span;
    for (const Value v : in)
      if (tables.contains(v)) tables.at(v).push_back(span);
  };
  for (const Primitive& primitive : body) {
    if (const auto* p = std::get_if<LoadTable>(&primitive)) tables[p->out] = {};
    if (const auto* p = std::get_if<LoadTile>(&primitive)) spans[p->out] = {0, p->from.cols};
    if (const auto* p = std::get_if<Columns>(&primitive))
      spans[p->out] = {p->begin, p->begin + p->cols};
    if (const auto* p = std::get_if<Map>(&primitive)) meet(p->in, p->out);
    if (const auto* p = std::get_if<PairMap>(&primitive)) meet(p->in, p->out.front());
  }
  return tables;
}

// Σ over the tile columns: how many of the table's `width` columns a row of the tile meets.
std::int64_t table_columns(const Tiling& tiling, const std::vector<ColumnSpan>& partners,
                           std::int64_t width) {
  std::int64_t sum = 0;
  for (std::int64_t first = 0; first < tiling.cols; first += tiling.tile.n) {
    const std::int64_t last = std::min(tiling.cols, first + tiling.tile.n);
    std::set<std::int64_t> met;
    for (const ColumnSpan& p : partners) {
      const std::int64_t begin = std::max(first, p.begin);
      const std::int64_t end = std::min({last, p.end, begin + width});
      for (std::int64_t c = begin; c < end; ++c) met.insert((c - p.begin) % width);
    }
    sum += std::ssize(met);
  }
  return sum;
}

// What each primitive adds; Columns narrows the tiling for those after it.
struct AddPrimitive {
  Tiling& tiling;
  Tally& tally;
  const std::map<Value, std::vector<ColumnSpan>>& tables;

  void operator()(const Columns& p) const {
    tiling.first_col = p.begin;
    tiling.end_col = p.begin + p.cols;
  }
  void operator()(const LoadTile& p) const { tally.load(p.from, elements(p.from)); }
  void operator()(const LoadHalves& p) const { tally.load(p.from, elements(p.from) / 2); }
  void operator()(const LoadVector& p) const {
    const bool along_rows = p.axis == Axis::rows;
    tally.load(p.from, elements(p.from) * (along_rows ? tiling.col_tiles() : tiling.row_tiles()));
  }
  void operator()(const LoadTable& p) const {
    tally.load(p.from,
               tiling.rows * tiling.batch * table_columns(tiling, tables.at(p.out), p.from.cols));
  }
  void operator()(const StoreTile& p) const {
    if (p.accumulate) tally.load(p.to, elements(p.to));
    tally.store(p.to, elements(p.to));
  }
  void operator()(const StoreVector& p) const { tally.store(p.to, elements(p.to)); }
  void operator()(const TileReduce& p) const { tally.store(p.partial, elements(p.partial)); }
  void operator()(const OnlineLogSumExp& p) const {
    tally.load(p.targets, elements(p.targets) * tiling.col_tiles());
    tally.store(p.partial, elements(p.partial));
  }
  void operator()(const GatherSum& p) const {
    if (p.ids) tally.load(*p.ids, elements(*p.ids) * tiling.row_tiles() * tiling.col_tiles());
    tally.load(p.from, elements(p.from));
  }
  void operator()(const OneHot& p) const {
    tally.load(p.ids, elements(p.ids) * tiling.col_tiles());
  }
  void operator()(const Gather& p) const {
    tally.load(p.ids, elements(p.ids) * tiling.col_tiles());
    tally.load(p.from, checked_product<Bytes>(elements(p.ids), p.from.cols).value());
  }
  template <class OnChip>
  void operator()(const OnChip&) const {}
};

// Rows of the index space, and tiles, that run a part of an attention prologue: over all heads, as
// often as tiles run it. Every tile holds the columns of one head.
struct PrologueVisits {
  std::int64_t rows = 0;
  std::int64_t tiles = 0;
};

std::vector<Value> read_by(const Primitive& primitive) {
  if (const auto* p = std::get_if<Map>(&primitive)) return p->in;
  if (const auto* p = std::get_if<PairMap>(&primitive)) return p->in;
  if (const auto* p = std::get_if<Columns>(&primitive)) return {p->in};
  if (const auto* p = std::get_if<ConcatHalves>(&primitive)) return {p->lower, p->upper};
  if (const auto* p = std::get_if<StoreTile>(&primitive)) return {p->in};
  return {};
}

bool makes_one_of(const Primitive& primitive, const std::set<Value>& wanted) {
  if (const auto* p = std::get_if<LoadTile>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<LoadVector>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<LoadTable>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<Map>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<PairMap>(&primitive)) return wanted.contains(p->out.front());
  if (const auto* p = std::get_if<Columns>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<LoadHalves>(&primitive)) return wanted.contains(p->out);
  if (const auto* p = std::get_if<ConcatHalves>(&primitive)) return wanted.contains(p->out);
  return false;
}

// What `wanted` (or, where it is empty, what the prologue stores) needs of the prologue.
void add_prologue(const Program& program, std::set<Value> wanted, const PrologueVisits& visits,
                  std::int64_t head_width, Tally& tally) {
  const bool stores = wanted.empty();
  for (auto it = program.prologue.rbegin(); it != program.prologue.rend(); ++it) {
    const auto* store = std::get_if<StoreTile>(&*it);
    if (!makes_one_of(*it, wanted) && !(stores && store != nullptr)) continue;
    const std::vector<Value> in = read_by(*it);
    wanted.insert(in.begin(), in.end());
    if (store != nullptr) tally.store(store->to, elements(store->to));
    if (const auto* p = std::get_if<LoadTile>(&*it))
      tally.load(p->from, checked_product<Bytes>(visits.rows, head_width).value());
    if (const auto* p = std::get_if<LoadTable>(&*it))
      tally.load(p->from, visits.rows * std::min(head_width, p->from.cols));
    if (const auto* p = std::get_if<LoadHalves>(&*it))
      tally.load(p->from, checked_product<Bytes>(visits.rows, head_width).value());
    if (const auto* p = std::get_if<LoadVector>(&*it))
      tally.load(p->from, p->axis == Axis::rows ? visits.rows : visits.tiles * head_width);
  }
}

Tiling mainloop(const GemmMainloop& m, TileShape tile, Tally& tally) {
  tally.load(m.a, checked_product<Bytes>(m.M, m.K, m.batch, ceil_div(m.N, tile.n)).value());
  tally.load(m.b, checked_product<Bytes>(m.N, m.K, m.batch, ceil_div(m.M, tile.m)).value());
  return {m.M, m.N, m.batch, tile, 0, m.N};
}

// Key tiles own thread blocks: each loads its K and V once (per query head where each has a dK and
// dV of its own) and Q, dY, log-sum-exp and delta of the query tiles that see it. dQ is added to in
// memory by all key tiles of a query tile but the first, which stores it (with the body).
void gradient(const AttentionMainloop& m, const Program& program, TileShape tile, Tally& tally) {
  const AttentionShape& s = m.shape;
  std::int64_t rows = 0;  // of query tiles, as often as key tiles visit them
  for (std::int64_t k = 0; k < s.kv_tokens; k += tile.n) {
    const KeyRange queries = query_tiles_that_see(s, k, std::min(tile.n, s.kv_tokens - k), tile.m);
    rows += queries.end - queries.begin;
  }
  const std::int64_t visits = checked_product<Bytes>(rows, s.heads, s.batch).value();
  const std::int64_t shared = m.gradient->per_query_head ? s.heads / s.kv_heads : 1;
  const std::int64_t visited = checked_product<Bytes>(visits, s.head_width).value();
  tally.load(m.q, visited);
  tally.load(m.k, elements(m.k) * shared);
  tally.load(m.v, elements(m.v) * shared);
  tally.load(m.gradient->dy, visited);
  tally.load(m.gradient->log_sum_exp, visits);
  tally.load(m.gradient->delta, visits);
  for (const Primitive& p : program.body) {
    const auto* dq = std::get_if<StoreTile>(&p);
    if (dq == nullptr || dq->in != 0) continue;
    tally.load(dq->to, visited - elements(m.q));
    tally.store(dq->to, visited - elements(m.q));
  }
}

Tiling mainloop(const AttentionMainloop& m, TileShape tile, Tally& tally) {
  const AttentionShape& s = m.shape;
  const std::int64_t width = s.heads * s.head_width;
  const Tiling space{s.batch * s.q_tokens, width, 1, {tile.m, s.head_width}, 0, width};
  if (m.gradient) return space;
  std::int64_t keys = 0;
  for (std::int64_t q = 0; q < s.q_tokens; q += tile.m) {
    const KeyRange range = visible_keys(s, q, std::min(tile.m, s.q_tokens - q));
    keys += range.end - range.begin;
  }
  const std::int64_t kv = checked_product<Bytes>(keys, s.head_width, s.heads, s.batch).value();
  if (m.q_value < 0) tally.load(m.q, elements(m.q));
  if (m.k_value < 0) tally.load(m.k, kv);
  if (m.v_value < 0) tally.load(m.v, kv);
  return space;
}

// Q's part of the prologue runs once per query tile and head, K's and V's once per key tile that a
// query tile visits, what it stores once per query tile and key head.
void attention_prologue(const AttentionMainloop& m, const Program& program, TileShape tile,
                        Tally& tally) {
  const AttentionShape& s = m.shape;
  const std::int64_t query_tiles = ceil_div(s.q_tokens, tile.m);
  PrologueVisits keys;
  for (std::int64_t q = 0; q < s.q_tokens; q += tile.m) {
    const KeyRange range = visible_keys(s, q, std::min(tile.m, s.q_tokens - q));
    keys.rows += checked_product<Bytes>(range.end - range.begin, s.heads, s.batch).value();
    keys.tiles += ceil_div(range.end - range.begin, tile.n) * s.heads * s.batch;
  }
  const auto tiles_of = [&](std::int64_t heads) {
    return PrologueVisits{s.batch * s.q_tokens * heads, s.batch * query_tiles * heads};
  };
  if (m.q_value >= 0) add_prologue(program, {m.q_value}, tiles_of(s.heads), s.head_width, tally);
  if (m.k_value >= 0) add_prologue(program, {m.k_value}, keys, s.head_width, tally);
  if (m.v_value >= 0) add_prologue(program, {m.v_value}, keys, s.head_width, tally);
  add_prologue(program, {}, tiles_of(s.kv_heads), s.head_width, tally);
}

Tiling mainloop(const StreamMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}
Tiling mainloop(const RowMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}

// Columns that must lie in one tile: pairs, groups of heads.
std::int64_t column_group(const Program& program) {
  std::int64_t group = 1;
  for (const Primitive& primitive : program.body) {
    if (const auto* pairs = std::get_if<PairMap>(&primitive)) {
      group = std::lcm(group, 2 * pairs->distance);
    } else if (const auto* halves = std::get_if<ConcatHalves>(&primitive)) {
      group = std::lcm(group, halves->group);
    } else if (const auto* heads = std::get_if<HeadSum>(&primitive)) {
      group = std::lcm(group, heads->count * heads->width);
    }
  }
  return group;
}

TileShape stream_tile(const Program& program, std::int64_t rows) {
  constexpr TileShape kUsual{16, 256};
  const std::int64_t group = column_group(program);
  const bool whole_columns =
      std::any_of(program.body.begin(), program.body.end(),
                  [](const Primitive& p) { return std::holds_alternative<ColumnReduce>(p); });
  // Sums of gathered rows read all ids in every tile: fewer, taller tiles.
  const bool gathers =
      std::any_of(program.body.begin(), program.body.end(),
                  [](const Primitive& p) { return std::holds_alternative<GatherSum>(p); });
  const std::int64_t height = whole_columns ? rows : gathers ? 4 * kUsual.m : kUsual.m;
  return {height, std::max(group, kUsual.n / group * group)};
}

}  // namespace

TileShape default_tile(const Program& program) {
  if (const auto* stream = std::get_if<StreamMainloop>(&program.mainloop))
    return stream_tile(program, stream->rows);
  if (const auto* row = std::get_if<RowMainloop>(&program.mainloop)) return {1, row->cols};
  return {128, 128};
}

KeyRange visible_keys(const AttentionShape& attention, std::int64_t first_query,
                      std::int64_t count) {
  const std::int64_t before = attention.kv_tokens - attention.q_tokens;  // position of query 0
  KeyRange range{0, attention.kv_tokens};
  if (attention.causal) range.end = before + first_query + count;
  if (attention.window > 0) {
    range.begin = std::max<std::int64_t>(0, before + first_query + 1 - attention.window);
  }
  return range;
}

KeyRange query_tiles_that_see(const AttentionShape& attention, std::int64_t first_key,
                              std::int64_t count, std::int64_t tile) {
  const std::int64_t before = attention.kv_tokens - attention.q_tokens;  // position of query 0
  std::int64_t begin = 0;
  std::int64_t end = attention.q_tokens;
  if (attention.causal) begin = std::max<std::int64_t>(0, first_key - before);
  if (attention.window > 0) end = std::min(end, first_key + count - 1 + attention.window - before);
  if (begin >= end) return {};
  return {begin / tile * tile, std::min(attention.q_tokens, ceil_div(end, tile) * tile)};
}

std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Program& program,
                                            TileShape tile) {
  Tally tally(graph);
  Tiling tiling =
      std::visit([&](const auto& m) { return mainloop(m, tile, tally); }, program.mainloop);
  if (const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop)) {
    if (attention->gradient) gradient(*attention, program, tile, tally);
    attention_prologue(*attention, program, tile, tally);
  }
  const auto tables = table_partners(program.body, tiling.cols);
  for (const Primitive& p : program.body) std::visit(AddPrimitive{tiling, tally, tables}, p);
  return tally.take();
}

std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Kernel& kernel) {
  Tally tally(graph);
  for (const Program& phase : kernel.phases) {
    for (const RequestedBytes& r : requested_bytes(graph, phase, default_tile(phase))) tally.add(r);
  }
  return tally.take();
}

Bytes total(const std::vector<RequestedBytes>& requested) {
  Bytes sum;
  for (const RequestedBytes& r : requested) sum += r.loaded + r.stored;
  return sum;
}

DistinctBytes distinct_bytes(const Graph& graph, const Kernel& kernel) {
  std::vector<Operand> loaded;
  std::vector<Operand> stored;
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : stores(phase)) stored.push_back(o);
  }
  const auto own = [&](const Operand& o) {
    return std::any_of(stored.begin(), stored.end(),
                       [&](const Operand& s) { return s.tensor == o.tensor && s.rows >= o.rows; });
  };
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : loads(phase)) {
      if (!own(o)) loaded.push_back(o);
    }
  }
  return {distinct_bytes(graph, loaded), distinct_bytes(graph, stored)};
}

Flops flops(const Graph& graph, const Kernel& kernel) {
  Flops sum;
  for (const OpId op : kernel.ops) sum += flops(graph, graph.op(op));
  return sum;
}

}  // namespace fuseline
