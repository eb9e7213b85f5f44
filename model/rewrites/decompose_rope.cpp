#include "model/rewrites/decompose_rope.h"

#include <algorithm>
#include <utility>

namespace fuseline {

namespace {

bool is_halved_rope(const Op& op) {
  return op.kind == OpKind::rope && !op.attributes.pairs_interleaved;
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), is_halved_rope); }

bool decompose(const Op& rope, Graph& to) {
  if (!is_halved_rope(rope)) return false;
  const Operand x = rope.reads[0];
  const Tensor like = to.tensor(rope.writes[0].tensor);
  const auto step = [&](const std::string& suffix, OpKind kind, std::vector<Operand> reads,
                        std::int64_t cols) {
    const std::string name = rope.name + "_" + suffix;
    const std::string symbol = cols == x.cols ? like.symbol : "[M, H·d/2]";
    const Operand y = to.whole(add_activation(to, name, symbol, like.dtype, x.rows, cols));
    to.add_op({name, kind, std::move(reads), {y}, rope.attributes, rope.site});
    return y;
  };
  const Operand c = step("mul_cos", OpKind::mul_table, {x, rope.reads[1]}, x.cols);
  const Operand n = step("negate", OpKind::negate_half, {x}, x.cols / 2);
  const Operand r = step("concat", OpKind::concat_halves, {n, x}, x.cols);
  const Operand s = step("mul_sin", OpKind::mul_table, {r, rope.reads[2]}, x.cols);
  to.add_op({rope.name + "_add", OpKind::add, {c, s}, rope.writes, rope.attributes, rope.site});
  return true;
}

}  // namespace

Rewrite decompose_rope() {
  return {"decompose_rope", "RoPE becomes 5 framework primitives a tensor", applies,
          [](Block& block) { block.graph = replace_ops(block.graph, decompose); }};
}

}  // namespace fuseline
