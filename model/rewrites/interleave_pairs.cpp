#include "model/rewrites/interleave_pairs.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/formats/weight_format.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_interleave_pairs {
namespace {

// The operators whose pairs a rewrite brings together.
using Chosen = bool (*)(const Op&);
bool is_rope(const Op& op) { return op.kind == operators::rope; }

// Groups of adjacent columns whose pairs are brought together: the first `group` of every `step`.
struct Groups {
  std::int64_t group = 0;
  std::int64_t step = 0;
};

// Of columns (or rows) [begin, begin + count) of a tensor.
void add(std::vector<Interleaving>& all, const std::string& tensor, bool columns,
         std::int64_t begin, std::int64_t count, const Groups& groups) {
  if (groups.group == groups.step)
    return all.push_back({tensor, columns, begin, count, groups.group});
  for (std::int64_t at = begin; at < begin + count; at += groups.step)
    all.push_back({tensor, columns, at, groups.group, groups.group});
}

// Whether all rows of the product are pairs of two halves that have blocks of scales of their own.
// The blocks of both halves then alternate as the rows do (StoredWeight::pairs):
//   rows   g0 g1 .. g127 | u0 u1 .. u127  ->  g0 u0 g1 u1 .. g127 u127, scales G U -> G U
bool pairs_of_blocks(const GemmShape& shape, const Operand& o, const Groups& group) {
  const std::int64_t rows = shape.weight.format->group_rows;
  return group.group == group.step && group.group == shape.N && o.col_begin == 0 &&
         o.cols == shape.N && shape.N % (2 * rows) == 0;
}

// Whether pairs lie within blocks of rows that share their scales: there rows may change places.
bool within_blocks(const GemmShape& shape, const Operand& o, const Groups& group) {
  const std::int64_t rows = shape.weight.format->group_rows;
  return rows % group.step == 0 && o.col_begin % group.step == 0;
}

// The scales of reordered rows of a weight go with them. Rows that share theirs part only where
// those of their partners do too.
bool trace_scales(const Graph& graph, const Op& product, const Operand& o, const Groups& group,
                  std::vector<Interleaving>& found) {
  const GemmShape shape = gemm_shape(product);
  const std::vector<ScaleTensor> beside = shape.weight.beside(shape.N, shape.K);
  const auto matrices = std::max<std::int64_t>(1, std::ssize(shape.groups));
  for (std::size_t i = 0; i < beside.size(); ++i) {
    if (beside[i].kind == ScaleKind::tensor_scale) continue;
    const std::string& scales = graph.tensor(product.reads[2 + i].tensor).name;
    if (beside[i].rows != shape.N) {
      if (within_blocks(shape, o, group)) continue;
      if (!pairs_of_blocks(shape, o, group)) return false;
      for (std::int64_t m = 0; m < matrices; ++m)
        found.push_back({scales, false, m * beside[i].rows, beside[i].rows, beside[i].rows});
      continue;
    }
    for (std::int64_t m = 0; m < matrices; ++m)
      add(found, scales, false, m * shape.N + o.col_begin, o.cols, group);
  }
  return true;
}

// What must be reordered so that columns `o` of a tensor come out reordered: the GEMM's weight and
// the vectors applied on the way. False when the columns do not come from one GEMM.
bool trace(const Graph& graph, const Operand& o, const Groups& group,
           std::vector<Interleaving>& found) {
  const std::vector<OpId> producers = graph.producers(o.tensor);
  if (producers.size() != 1) return false;
  const Op& op = graph.op(producers[0]);
  const auto vector = [&](const Operand& v) {
    add(found, graph.tensor(v.tensor).name, true, o.col_begin, o.cols, group);
  };
  if (is_gemm(op)) {
    const Tensor& weight = graph.tensor(op.reads[1].tensor);
    const GemmShape shape = gemm_shape(op);
    const std::int64_t step = shape.groups.empty() ? weight.rows : shape.N;
    for (std::int64_t first = 0; first < weight.rows; first += step)  // of every group's matrix
      add(found, weight.name, false, first + o.col_begin, o.cols, group);
    return trace_scales(graph, op, o, group, found);
  }
  Operand before = o;
  before.tensor = op.reads[0].tensor;
  before.col_begin += op.reads[0].col_begin - op.writes[0].col_begin;
  if (op.kind == operators::head_norm) {  // its weight is that of every head
    const Operand& w = op.reads[1];
    if (group.step != w.cols) return false;
    add(found, graph.tensor(w.tensor).name, true, 0, w.cols, group);
  } else if (op.kind == operators::bias_add) {
    vector(op.reads[1]);
  } else if (op.kind == operators::layer_norm_deferred) {
    vector(op.reads[2]);
    vector(op.reads[3]);
  } else if (op.kind != operators::row_scale) {
    return false;
  }
  return trace(graph, before, group, found);
}

void add_once(std::vector<Interleaving>& all, const Interleaving& one) {
  const bool known = std::ranges::any_of(all, [&](const Interleaving& i) {
    return i.tensor == one.tensor && i.begin == one.begin && i.columns == one.columns;
  });
  if (!known) all.push_back(one);
}

Groups heads_of(const Op& rope) {
  const Pairs& pairs = rope.attributes.as<Pairs>();
  return {pairs.turned(), pairs.head_width};
}

// Columns of a cache that hold rotated heads, where its new rows are a rotation's result, or have
// one beside other columns.
void cached_heads(const Graph& graph, const std::string& cache, const Operand& rows,
                  std::int64_t first, std::vector<Interleaving>& found) {
  const std::vector<OpId> producers = graph.producers(rows.tensor);
  if (producers.size() != 1) return;
  const Op& op = graph.op(producers[0]);
  if (op.kind == operators::rope && !has_adjacent_pairs(op))
    return add(found, cache, true, first, rows.cols, heads_of(op));
  if (op.kind != operators::concat) return;
  for (const Operand& part : op.reads) {
    cached_heads(graph, cache, part, first, found);
    first += part.cols;
  }
}

// The reorderings that turn every operator of the kind into one on adjacent pairs.
std::vector<Interleaving> plan(const Graph& graph, Chosen chosen) {
  std::vector<Interleaving> all;
  for (const Op& op : graph.ops()) {
    if (!chosen(op) || has_adjacent_pairs(op)) continue;
    const bool rope = is_rope(op);
    const Groups group = rope ? heads_of(op) : Groups{op.reads[0].cols, op.reads[0].cols};
    std::vector<Interleaving> found;
    if (!trace(graph, op.reads[0], group, found)) return {};
    if (rope)
      for (const std::size_t table : {std::size_t{1}, std::size_t{2}})
        found.push_back(
            {graph.tensor(op.reads[table].tensor).name, true, 0, group.group, group.group});
    for (const Interleaving& i : found) add_once(all, i);
  }
  if (all.empty() || chosen != is_rope) return all;
  for (const Op& op : graph.ops()) {  // keys already in the cache
    if (!op.kind->appends) continue;
    std::vector<Interleaving> found;
    cached_heads(graph, graph.tensor(op.writes[0].tensor).name, op.reads[0], 0, found);
    for (const Interleaving& i : found) add_once(all, i);
  }
  return all;
}

// The product whose columns these are, behind what is applied to them.
std::optional<OpId> product_of(const Graph& graph, Operand o) {
  for (;;) {
    const std::vector<OpId> producers = graph.producers(o.tensor);
    if (producers.size() != 1) return std::nullopt;
    const Op& op = graph.op(producers[0]);
    if (is_gemm(op)) return producers[0];
    o = op.reads[0];
  }
}

// Products whose pairs have blocks of scales say so.
void mark_pairs(Graph& graph, const Op& chosen) {
  const auto product = product_of(graph, chosen.reads[0]);
  if (!product) return;
  Op& op = graph.op(*product);
  const StoredWeight weight = gemm_shape(op).weight;
  const Groups all{chosen.reads[0].cols, chosen.reads[0].cols};
  if (!weight.quantised() || weight.format->group_rows == 1 ||
      within_blocks(gemm_shape(op), chosen.reads[0], all))
    return;
  if (auto* layout = op.attributes.get<GemmLayout>()) {
    GemmLayout marked = *layout;
    marked.weight.pairs = true;
    op.attributes = marked;
  } else if (auto* rows = op.attributes.get<RaggedRows>()) {
    RaggedRows marked = *rows;
    marked.weight.pairs = true;
    op.attributes = marked;
  }
}

void interleave(Block& block, Chosen chosen) {
  const std::vector<Interleaving> all = plan(block.graph, chosen);
  FUSELINE_ASSERT(!all.empty(), "no pairs to interleave");
  for (const Interleaving& i : all) block.preparation.interleavings.push_back(i);
  for (std::size_t i = 0; i < block.graph.ops().size(); ++i) {
    Op& op = block.graph.op(OpId{static_cast<std::int32_t>(i)});
    if (!chosen(op)) continue;
    Pairs pairs = op.attributes.as<Pairs>();
    pairs.interleaved = true;
    op.attributes = pairs;
    if (chosen == is_gated) mark_pairs(block.graph, op);
  }
}

}  // namespace
}  // namespace in_interleave_pairs

Rewrite interleave_gate_up() {
  return {"interleave_gate_up", "gate and up become adjacent columns",
          [](const Graph& graph) { return !in_interleave_pairs::plan(graph, is_gated).empty(); },
          [](Block& block) { in_interleave_pairs::interleave(block, is_gated); }};
}

Rewrite interleave_heads() {
  return {
      "interleave_heads", "the two halves of each RoPE pair become adjacent columns",
      [](const Graph& graph) {
        return !in_interleave_pairs::plan(graph, in_interleave_pairs::is_rope).empty();
      },
      [](Block& block) { in_interleave_pairs::interleave(block, in_interleave_pairs::is_rope); }};
}

void note_reordered_gradients(Block& block) {
  for (const Interleaving& i : block.preparation.interleavings) {
    const auto of = block.graph.find_tensor(i.tensor);
    const auto gradient =
        of ? block.graph.with(Relation::gradient_of, *of) : std::optional<TensorId>();
    if (!gradient || block.graph.tensor(*gradient).role != Role::output) continue;
    Interleaving result = i;
    result.tensor = block.graph.tensor(*gradient).name;
    block.preparation.results.push_back(std::move(result));
  }
}

}  // namespace fuseline
