#include "model/rewrites/merge_rope.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"

namespace fuseline {

namespace in_merge_rope {
namespace {

struct Pair {
  OpId q, k;
};

bool side_by_side(const Op& q, const Op& k) {
  const Operand& a = q.reads[0];
  const Operand& b = k.reads[0];
  return a.tensor == b.tensor && a.col_begin + a.cols == b.col_begin && same_rows(a, b) &&
         q.attributes.as<Pairs>() == k.attributes.as<Pairs>() &&
         q.reads[1].tensor == k.reads[1].tensor && q.reads[2].tensor == k.reads[2].tensor;
}

std::optional<Pair> find_pair(const Graph& graph) {
  std::optional<OpId> last;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const OpId id{static_cast<std::int32_t>(i)};
    if (graph.op(id).kind != operators::rope) continue;
    if (last && side_by_side(graph.op(*last), graph.op(id))) return Pair{*last, id};
    last = id;
  }
  return std::nullopt;
}

void apply(Block& block) {
  const std::optional<Pair> pair = find_pair(block.graph);
  FUSELINE_ASSERT(pair, "no two RoPEs side by side");
  const Graph& from = block.graph;
  const Op q = from.op(pair->q);
  const Op k = from.op(pair->k);
  const TensorId q_rot = q.writes[0].tensor;
  const TensorId k_rot = k.writes[0].tensor;
  const std::int64_t q_cols = q.writes[0].cols;
  const std::int64_t cols = q_cols + k.writes[0].cols;
  const Tensor like = from.tensor(q_rot);
  const bool plain = like.symbol == "[M, D]" && cols == 2 * q_cols;

  std::optional<TensorId> both;
  const auto moved = [&](Operand o) {
    if (both && (o.tensor == q_rot || o.tensor == k_rot)) {
      if (o.tensor == k_rot) o.col_begin += q_cols;
      o.tensor = *both;
    }
    return o;
  };
  block.graph = without_unused_tensors(replace_ops(from, [&](const Op& op, Graph& to) {
    if (op.name == k.name) return true;
    if (op.name == q.name) {
      both = add_activation(to, "qk_rot", plain ? "[M, 2D]" : "[M, (H+Hkv)·d]", like.dtype,
                            like.rows, cols);
      Op merged = q;
      merged.name = "rope_qk";
      merged.reads[0].cols = cols;
      merged.writes = {to.whole(*both)};
      to.add_op(std::move(merged));
      return true;
    }
    Op rewired = op;
    for (Operand& o : rewired.reads) o = moved(o);
    to.add_op(std::move(rewired));
    return true;
  }));
}

}  // namespace
}  // namespace in_merge_rope

Rewrite merge_rope() {
  return {"merge_rope", "the slices of Q and K are rotated by one operator",
          [](const Graph& graph) { return in_merge_rope::find_pair(graph).has_value(); },
          in_merge_rope::apply};
}

}  // namespace fuseline
