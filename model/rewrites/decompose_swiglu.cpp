#include "model/rewrites/decompose_swiglu.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace {

bool is_halved_swiglu(const Op& op) {
  const bool swiglu = op.kind == operators::swiglu || op.kind == operators::swiglu_backward;
  return swiglu && !has_adjacent_pairs(op);
}

// Frameworks store SwiGLU's output: a gradient that makes it again has no such steps.
bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), is_halved_swiglu) &&
         std::ranges::none_of(graph.ops(), [](const Op& op) {
           return op.kind == operators::swiglu_backward && op.writes.size() > 1;
         });
}

struct Halves {
  Operand gate, up;
};

Halves halves_of(const Operand& gu) {
  Halves h{gu, gu};
  h.gate.cols = h.up.cols = gu.cols / 2;
  h.up.col_begin += h.gate.cols;
  return h;
}

Operand like(Graph& to, const std::string& name, const Operand& o) {
  const Tensor t = to.tensor(o.tensor);
  return to.whole(add_activation(to, name, t.symbol, t.dtype, t.rows, t.cols));
}

void forward(const Op& op, Graph& to) {
  const auto [gate, up] = halves_of(op.reads[0]);
  const Operand s = like(to, op.name + "_silu", op.writes[0]);
  to.add_op({op.name + "_silu", operators::silu, {gate}, {s}, {}, op.site, op.pass});
  to.add_op({op.name + "_mul", operators::mul, {s, up}, op.writes, {}, op.site, op.pass});
}

// silu(gate) as the forward pass stored it.
Operand stored_silu(const Graph& to, const Operand& gate) {
  const auto it = std::ranges::find_if(to.ops(), [&](const Op& op) {
    return op.kind == operators::silu && op.reads[0].tensor == gate.tensor &&
           op.reads[0].col_begin == gate.col_begin;
  });
  FUSELINE_ASSERT(it != to.ops().end(), "the forward pass has no SiLU of the gate");
  return it->writes[0];
}

void backward(const Op& op, Graph& to) {
  FUSELINE_ASSERT(op.writes.size() == 1, op.name + ": frameworks store SwiGLU's output");
  const Operand dy = op.reads[0];
  const auto [gate, up] = halves_of(op.reads[1]);
  const Operand du = like(to, op.name + "_dup", dy);
  const Operand ds = like(to, op.name + "_dsilu", dy);
  const Operand dg = like(to, op.name + "_dgate", dy);
  const auto emit = [&](const std::string& suffix, OpKind kind, std::vector<Operand> reads,
                        const Operand& write) {
    to.add_op({op.name + suffix, kind, std::move(reads), {write}, {}, op.site, op.pass});
  };
  emit("_mul_silu", operators::mul, {dy, stored_silu(to, gate)}, du);
  emit("_mul_up", operators::mul, {dy, up}, ds);
  emit("_silu", operators::silu_backward, {ds, gate}, dg);
  emit("_concat", operators::concat, {dg, du}, op.writes[0]);
}

bool decompose(const Op& op, Graph& to) {
  if (!is_halved_swiglu(op)) return false;
  if (op.kind == operators::swiglu)
    forward(op, to);
  else
    backward(op, to);
  return true;
}

}  // namespace

Rewrite decompose_swiglu() {
  return {"decompose_swiglu", "SwiGLU becomes SiLU and a multiplication", applies,
          [](Block& block) { block.graph = replace_ops(block.graph, decompose); }};
}

}  // namespace fuseline
