#include "sim/memory/traffic.h"

#include <algorithm>
#include <optional>
#include <set>
#include <variant>

#include "base/error.h"
#include "model/chain.h"
#include "model/operators/operator_table.h"
#include "model/primitives/values.h"
#include "sim/memory/tile_elements.h"
#include "sim/memory/tile_needs.h"
#include "sim/memory/visible_keys.h"

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

// What a primitive adds; a slice narrows the tiling for those after it.
void add_primitive(const Primitive& primitive, const ValueAnalysis& values, Tiling& tiling,
                   const TileNeeds* needs, Tally& tally) {
  if (const auto slice = primitive.demands().slice) {
    tiling.first_col = slice->begin;
    tiling.end_col = slice->begin + slice->cols;
  }
  for (const Access& access : primitive.accesses()) {
    if (!access.store) {
      tally.load(access.operand, needs != nullptr
                                     ? needed_elements(access, primitive, tiling, values, *needs)
                                     : loaded_elements(access, primitive, tiling, values));
      continue;
    }
    if (access.accumulate) tally.load(access.operand, access.elements());
    tally.store(access.operand, access.elements());
  }
}

// Rows of the index space, and tiles, that run a part of an attention prologue: over all heads, as
// often as tiles run it. Every tile holds the columns of one head.
struct PrologueVisits {
  std::int64_t rows = 0;
  std::int64_t tiles = 0;
};

// What one visit of a prologue loads of an operand: of a head's columns those that it has.
std::int64_t prologue_elements(const Access& access, const PrologueVisits& visits,
                               std::int64_t head_width) {
  switch (access.reach) {
    case Reach::table:
      return visits.rows * std::min(head_width, access.operand.cols);
    case Reach::row_numbers:
      return visits.rows;
    case Reach::col_numbers:
      return visits.tiles * head_width;
    default:
      return checked_product<Bytes>(visits.rows, head_width).value();
  }
}

// What `wanted` (or, where it is empty, what the prologue stores) needs of the prologue.
void add_prologue(const Program& program, std::set<Value> wanted, const PrologueVisits& visits,
                  std::int64_t head_width, Tally& tally) {
  const bool all_stores = wanted.empty();
  for (auto it = program.prologue.rbegin(); it != program.prologue.rend(); ++it) {
    const std::vector<Access> accesses = it->accesses();
    const bool makes =
        std::ranges::any_of(it->defines(), [&](Value v) { return wanted.contains(v); });
    const bool stores = all_stores && std::ranges::any_of(accesses, &Access::store);
    if (!makes && !stores) continue;
    for (const Value v : it->uses()) wanted.insert(v);
    for (const Access& access : accesses) {
      if (access.store)
        tally.store(access.operand, access.elements());
      else
        tally.load(access.operand, prologue_elements(access, visits, head_width));
    }
  }
}

Tiling mainloop(const GemmMainloop& m, TileShape tile, Tally& tally) {
  const Tiling space{m.M, m.N, m.batch, tile, 0, m.N, m.groups};
  // Products of parts of k read each row of a and b in one of them.
  const std::int64_t alike = m.depths.empty() ? m.batch : 1;
  tally.load(m.a, checked_product<Bytes>(m.M, m.K, alike, ceil_div(m.N, tile.n)).value());
  tally.load(m.b, checked_product<Bytes>(m.N, m.K, space.row_tiles() / m.batch * alike).value());
  const std::vector<ScaleTensor> beside = m.weight.beside(m.N, m.K);
  for (std::size_t i = 0; i < beside.size(); ++i) {
    std::int64_t numbers = 0;
    for (std::int64_t n = 0; n < m.N; n += tile.n)
      numbers += m.weight.beside(beside[i].kind, n, std::min(m.N, n + tile.n), 0, m.K).elements();
    tally.load(m.beside_b[i], checked_product<Bytes>(numbers, space.row_tiles()).value());
  }
  if (m.a_scale)
    tally.load(*m.a_scale,
               checked_product<Bytes>(elements(*m.a_scale), ceil_div(m.N, tile.n)).value());
  return space;
}

// Key tiles own thread blocks: each loads its K and V once (per query head where each has a dK and
// dV of its own) and Q, dY, log-sum-exp and delta of the query tiles that see it. dQ is added to in
// memory by all key tiles of a query tile but the first, which stores it (with the body).
void gradient(const AttentionMainloop& m, const Program& program, TileShape tile, Tally& tally) {
  const AttentionShape& s = m.shape;
  std::int64_t rows = 0;   // of query tiles, as often as key tiles visit them
  std::int64_t pairs = 0;  // with the keys of the tiles
  for (std::int64_t k = 0; k < s.kv_tokens; k += tile.n) {
    const std::int64_t keys = std::min(tile.n, s.kv_tokens - k);
    const KeyRange queries = query_tiles_that_see(s, k, keys, tile.m);
    rows += queries.end - queries.begin;
    pairs += (queries.end - queries.begin) * keys;
  }
  const std::int64_t visits = checked_product<Bytes>(rows, s.heads, s.batch).value();
  const std::int64_t shared = m.gradient->per_query_head ? s.heads / s.kv_heads : 1;
  const std::int64_t visited = checked_product<Bytes>(visits, s.head_width).value();
  tally.load(m.q, visited);
  tally.load(m.k, elements(m.k) * shared);
  tally.load(m.v, elements(m.v) * shared);
  tally.load(m.gradient->dy, checked_product<Bytes>(visits, s.v_width()).value());
  tally.load(m.gradient->log_sum_exp, visits);
  tally.load(m.gradient->delta, visits);
  if (m.bias) tally.load(*m.bias, checked_product<Bytes>(pairs, s.heads, s.batch).value());
  for (const Primitive& p : program.body) {
    if (p.uses() != std::vector<Value>{0}) continue;
    for (const Access& dq : p.accesses()) {
      if (!dq.store || dq.reach != Reach::tile) continue;
      tally.load(dq.operand, visited - elements(m.q));
      tally.store(dq.operand, visited - elements(m.q));
    }
  }
}

Tiling mainloop(const AttentionMainloop& m, TileShape tile, Tally& tally) {
  const AttentionShape& s = m.shape;
  const std::int64_t head = m.gradient ? s.head_width : s.v_width();
  const std::int64_t width = s.heads * head;
  const Tiling space{s.batch * s.q_tokens, width, 1, {tile.m, head}, 0, width};
  if (m.gradient) return space;
  std::int64_t keys = 0;
  std::int64_t pairs = 0;
  for (std::int64_t q = 0; q < s.q_tokens; q += tile.m) {
    const std::int64_t queries = std::min(tile.m, s.q_tokens - q);
    const KeyRange range = visible_keys(s, q, queries);
    keys += range.end - range.begin;
    pairs += queries * (range.end - range.begin);
  }
  const std::int64_t visits = checked_product<Bytes>(keys, s.heads, s.batch).value();
  if (m.q_value < 0) tally.load(m.q, elements(m.q));
  if (m.k_value < 0) tally.load(m.k, checked_product<Bytes>(visits, s.head_width).value());
  if (m.v_value < 0) tally.load(m.v, checked_product<Bytes>(visits, s.v_width()).value());
  for (const auto* scale : {&m.k_scale, &m.v_scale})
    if (*scale) tally.load(**scale, visits);
  if (m.bias) tally.load(*m.bias, checked_product<Bytes>(pairs, s.heads, s.batch).value());
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
  if (m.v_value >= 0) add_prologue(program, {m.v_value}, keys, s.v_width(), tally);
  add_prologue(program, {}, tiles_of(s.kv_heads), s.head_width, tally);
}

// Heads that share keys add to their gradients, all but the first; sequences to those of the rates.
void gradient(const ScanMainloop& m, Tally& tally) {
  const ScanGradient& g = *m.gradient;
  const std::int64_t share = m.shape.heads / m.shape.groups;
  tally.load(g.dy, elements(g.dy));
  if (g.states) tally.load(*g.states, elements(*g.states));
  tally.store(g.d_decay, elements(g.d_decay));
  for (const Operand& sum : {g.dk, g.dq}) {
    tally.load(sum, elements(sum) * (share - 1));
    tally.store(sum, elements(sum) * share);
  }
  if (!g.d_rates) return;
  tally.load(*g.d_rates, elements(*g.d_rates) * (m.shape.batch - 1));
  tally.store(*g.d_rates, elements(*g.d_rates) * m.shape.batch);
}

// A thread block walks the tokens of one head: everything of its head once, and the group's k and q
// once more for every head that shares them.
Tiling mainloop(const ScanMainloop& m, TileShape, Tally& tally) {
  const ScanShape& s = m.shape;
  tally.load(m.x, elements(m.x));
  tally.load(m.log_decay, elements(m.log_decay));
  tally.load(m.k, elements(m.k) * (s.heads / s.groups));
  tally.load(m.q, elements(m.q) * (s.heads / s.groups));
  if (m.rates) tally.load(*m.rates, elements(*m.rates) * s.batch);
  if (m.state) tally.load(*m.state, elements(*m.state));
  if (m.state_after) tally.store(*m.state_after, elements(*m.state_after));
  if (m.gradient) gradient(m, tally);
  const std::int64_t width = s.heads * s.head_width;
  return {s.tokens, width, s.batch, {std::min(s.chunk, s.tokens), s.head_width}, 0, width};
}

Tiling mainloop(const StreamMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}
Tiling mainloop(const RowMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}

}  // namespace

std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Program& program,
                                            TileShape tile) {
  Tally tally(graph);
  Tiling tiling =
      std::visit([&](const auto& m) { return mainloop(m, tile, tally); }, program.mainloop);
  if (const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop)) {
    if (attention->gradient) gradient(*attention, program, tile, tally);
    attention_prologue(*attention, program, tile, tally);
  }
  const ValueAnalysis values = analyse(program);
  // Tiles of attention, of scans and of batches have the columns of one head.
  const auto* rows = std::get_if<RowMainloop>(&program.mainloop);
  const bool alike = std::holds_alternative<AttentionMainloop>(program.mainloop) ||
                     std::holds_alternative<ScanMainloop>(program.mainloop) || tiling.batch > 1 ||
                     !tiling.groups.empty() || (rows != nullptr && rows->heads > 1);
  const std::vector<TileNeeds> needs =
      alike ? std::vector<TileNeeds>{}
            : tile_needs(program, values, tiling.cols, rows != nullptr ? tiling.cols : tile.n);
  for (std::size_t i = 0; i < program.body.size(); ++i)
    add_primitive(program.body[i], values, tiling, alike ? nullptr : &needs[i], tally);
  return tally.take();
}

std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Kernel& kernel) {
  Tally tally(graph);
  const std::optional<Operand> kept = handed_over(kernel);
  for (const Program& phase : kernel.phases) {
    for (const RequestedBytes& r : requested_bytes(graph, phase, default_tile(phase)))
      if (!kept || kept->tensor != r.tensor) tally.add(r);
  }
  return tally.take();
}

Bytes total(const std::vector<RequestedBytes>& requested) {
  Bytes sum;
  for (const RequestedBytes& r : requested) sum += r.loaded + r.stored;
  return sum;
}

namespace {

// A state that a scan reads and overwrites was there before the kernel.
bool begins_with(const Program& phase, TensorId tensor) {
  const auto* scan = std::get_if<ScanMainloop>(&phase.mainloop);
  return scan != nullptr && scan->state && scan->state->tensor == tensor;
}

}  // namespace

DistinctBytes distinct_bytes(const Graph& graph, const Kernel& kernel) {
  std::vector<Operand> loaded;
  std::vector<Operand> stored;
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : stores(phase)) stored.push_back(o);
  }
  // What a chain hands over is no store either, when it has hidden the load.
  const std::optional<Operand> kept = handed_over(kernel);
  const auto own = [&](const Operand& o) {
    return std::any_of(stored.begin(), stored.end(),
                       [&](const Operand& s) { return s.tensor == o.tensor && s.rows >= o.rows; });
  };
  for (const Program& phase : kernel.phases) {
    for (const Operand& o : loads(phase)) {
      if (!own(o) || begins_with(phase, o.tensor)) loaded.push_back(o);
    }
  }
  if (kept) std::erase_if(stored, [&](const Operand& o) { return o.tensor == kept->tensor; });
  return {distinct_bytes(graph, loaded), distinct_bytes(graph, stored)};
}

Flops flops(const Graph& graph, const Kernel& kernel) {
  Flops sum;
  for (const OpId op : kernel.ops) sum += flops(graph, graph.op(op));
  return sum;
}

}  // namespace fuseline
