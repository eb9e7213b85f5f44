#include "model/rewrites/decompose_swiglu.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_decompose_swiglu {
namespace {

// A gated activation of two halves, or the gradient of one.
bool is_halved_gate(const Op& op) {
  return op.kind->gate.activation.known() && !has_adjacent_pairs(op);
}

// Frameworks store the activation's output: a gradient that makes it again has no such steps.
bool applies(const Graph& graph) {
  return std::ranges::any_of(graph.ops(), is_halved_gate) &&
         std::ranges::none_of(graph.ops(), [](const Op& op) {
           return op.kind->gate.backward && op.writes.size() > 1;
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
  const OpKind activation = op.kind->gate.activation;
  const std::string name = op.name + "_" + name_of(activation);
  const Operand s = like(to, name, op.writes[0]);
  to.add_op({name, activation, {gate}, {s}, {}, op.site, op.pass});
  to.add_op({op.name + "_mul", operators::mul, {s, up}, op.writes, {}, op.site, op.pass});
}

// f(gate) as the forward pass stored it.
Operand stored_activation(const Graph& to, OpKind activation, const Operand& gate) {
  const auto it = std::ranges::find_if(to.ops(), [&](const Op& op) {
    return op.kind == activation && op.reads[0].tensor == gate.tensor &&
           op.reads[0].col_begin == gate.col_begin;
  });
  FUSELINE_ASSERT(it != to.ops().end(), "the forward pass has no activation of the gate");
  return it->writes[0];
}

void backward(const Op& op, Graph& to) {
  FUSELINE_ASSERT(op.writes.size() == 1, op.name + ": frameworks store the activation's output");
  const Operand dy = op.reads[0];
  const auto [gate, up] = halves_of(op.reads[1]);
  const OpKind activation = op.kind->gate.activation;
  const std::string name = name_of(activation);
  const Operand du = like(to, op.name + "_dup", dy);
  const Operand ds = like(to, op.name + "_d" + name, dy);
  const Operand dg = like(to, op.name + "_dgate", dy);
  const auto emit = [&](const std::string& suffix, OpKind kind, std::vector<Operand> reads,
                        const Operand& write) {
    to.add_op({op.name + suffix, kind, std::move(reads), {write}, {}, op.site, op.pass});
  };
  emit("_mul_" + name, operators::mul, {dy, stored_activation(to, activation, gate)}, du);
  emit("_mul_up", operators::mul, {dy, up}, ds);
  emit("_" + name, op.kind->gate.gradient, {ds, gate}, dg);
  emit("_concat", operators::concat, {dg, du}, op.writes[0]);
}

bool decompose(const Op& op, Graph& to) {
  if (!is_halved_gate(op)) return false;
  if (op.kind->gate.backward)
    backward(op, to);
  else
    forward(op, to);
  return true;
}

}  // namespace
}  // namespace in_decompose_swiglu

Rewrite decompose_swiglu() {
  return {"decompose_swiglu",
          "SwiGLU, or another gated activation, becomes an activation and a multiplication",
          in_decompose_swiglu::applies, [](Block& block) {
            block.graph = replace_ops(block.graph, in_decompose_swiglu::decompose);
          }};
}

}  // namespace fuseline
