#include "sim/traffic.h"

#include <algorithm>
#include <variant>

#include "model/operators.h"

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
  // Σ over the tile columns of min(columns of the tile in range, limit).
  [[nodiscard]] std::int64_t clipped_columns(std::int64_t limit) const {
    std::int64_t sum = 0;
    for (std::int64_t j = first_col / tile.n; j * tile.n < end_col; ++j) {
      const std::int64_t begin = std::max(first_col, j * tile.n);
      const std::int64_t end = std::min({end_col, (j + 1) * tile.n, cols});
      sum += std::min(end - begin, limit);
    }
    return sum;
  }
};

// What each primitive adds; Columns narrows the tiling for those after it.
struct AddPrimitive {
  Tiling& tiling;
  Tally& tally;

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
    tally.load(p.from, tiling.rows * tiling.batch * tiling.clipped_columns(p.from.cols));
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
  template <class OnChip>
  void operator()(const OnChip&) const {}
};

Tiling mainloop(const GemmMainloop& m, TileShape tile, Tally& tally) {
  tally.load(m.a, checked_product<Bytes>(m.M, m.K, m.batch, ceil_div(m.N, tile.n)).value());
  tally.load(m.b, checked_product<Bytes>(m.N, m.K, m.batch, ceil_div(m.M, tile.m)).value());
  return {m.M, m.N, m.batch, tile, 0, m.N};
}

Tiling mainloop(const AttentionMainloop& m, TileShape tile, Tally& tally) {
  const OpAttributes& s = m.shape;
  std::int64_t keys = 0;
  for (std::int64_t q = 0; q < s.q_tokens; q += tile.m) {
    const KeyRange range = visible_keys(s, q, std::min(tile.m, s.q_tokens - q));
    keys += range.end - range.begin;
  }
  const std::int64_t kv = checked_product<Bytes>(keys, s.head_width, s.heads, s.batch).value();
  if (m.q_value < 0) tally.load(m.q, elements(m.q));
  tally.load(m.k, kv);
  tally.load(m.v, kv);
  const std::int64_t width = s.heads * s.head_width;
  return {s.batch * s.q_tokens, width, 1, tile, 0, width};
}

Tiling mainloop(const StreamMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}
Tiling mainloop(const RowMainloop& m, TileShape tile, Tally&) {
  return {m.rows, m.cols, 1, tile, 0, m.cols};
}

}  // namespace

TileShape default_tile(const Program& program) {
  if (std::holds_alternative<StreamMainloop>(program.mainloop)) return {16, 256};
  if (const auto* row = std::get_if<RowMainloop>(&program.mainloop)) return {1, row->cols};
  return {128, 128};
}

KeyRange visible_keys(const OpAttributes& attention, std::int64_t first_query, std::int64_t count) {
  const std::int64_t before = attention.kv_tokens - attention.q_tokens;  // position of query 0
  KeyRange range{0, attention.kv_tokens};
  if (attention.causal) range.end = before + first_query + count;
  if (attention.window > 0) {
    range.begin = std::max<std::int64_t>(0, before + first_query + 1 - attention.window);
  }
  return range;
}

std::vector<RequestedBytes> requested_bytes(const Graph& graph, const Program& program,
                                            TileShape tile) {
  Tally tally(graph);
  Tiling tiling =
      std::visit([&](const auto& m) { return mainloop(m, tile, tally); }, program.mainloop);
  // Where a prologue feeds K or V, the mainloop's count of key ranges stands for its loads.
  if (const auto* attention = std::get_if<AttentionMainloop>(&program.mainloop)) {
    const auto fed = [](const Operand& a, const Operand& b) {
      return a.tensor == b.tensor && a.col_begin == b.col_begin;
    };
    for (const Primitive& p : program.prologue) {
      const auto* load = std::get_if<LoadTile>(&p);
      const bool counted =
          load != nullptr && (fed(load->from, attention->k) || fed(load->from, attention->v));
      if (!counted) std::visit(AddPrimitive{tiling, tally}, p);
    }
  }
  for (const Primitive& p : program.body) std::visit(AddPrimitive{tiling, tally}, p);
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
