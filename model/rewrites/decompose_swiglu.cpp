#include "model/rewrites/decompose_swiglu.h"

#include <algorithm>

namespace fuseline {

namespace {

bool is_halved_swiglu(const Op& op) {
  return op.kind == OpKind::swiglu && !op.attributes.pairs_interleaved;
}

bool applies(const Graph& graph) { return std::ranges::any_of(graph.ops(), is_halved_swiglu); }

bool decompose(const Op& op, Graph& to) {
  if (!is_halved_swiglu(op)) return false;
  const Tensor like = to.tensor(op.writes[0].tensor);
  Operand gate = op.reads[0];
  gate.cols /= 2;
  Operand up = gate;
  up.col_begin += gate.cols;
  const Operand s = to.whole(
      add_activation(to, op.name + "_silu", like.symbol, like.dtype, like.rows, like.cols));
  to.add_op({op.name + "_silu", OpKind::silu, {gate}, {s}, {}, op.site});
  to.add_op({op.name + "_mul", OpKind::mul, {s, up}, op.writes, {}, op.site});
  return true;
}

}  // namespace

Rewrite decompose_swiglu() {
  return {"decompose_swiglu", "SwiGLU becomes SiLU and a multiplication", applies,
          [](Block& block) { block.graph = replace_ops(block.graph, decompose); }};
}

}  // namespace fuseline
