// The gradients of gate and up, and SwiGLU's output again where someone reads it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gated.h"

namespace fuseline {

namespace in_swiglu_backward {
namespace {

using namespace reference;

// s = σ(g) 3, t = g·s, du = dy·t, s + t(1 - s) 3, ·u, ·dy; the recomputed output t·u one more.
Flops count(const Graph& graph, const Op& op) {
  return op.writes.size() > 1 ? per_input<11>(graph, op) : per_input<10>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  gated_backward_reference(
      g, op, in, out, [](double x) { return x * sigmoid(x); },
      [](double x) {
        const double s = sigmoid(x);
        return s + x * s * (1.0 - s);
      });
}

// t = g·s, s = σ(g).
Value activated(Emitter& e, Value gate) {
  const Value s = e.map(maps::sigmoid, {gate}, "s");
  return e.map(maps::mul, {gate, s}, "t");
}

// s + t(1 - s)
Value slope(Emitter& e, Value gate) {
  const Value t = activated(e, gate);  // known
  const Value s = e.map(maps::sigmoid, {gate}, "s");
  const Value negative = e.map(maps::negate, {s}, "n");
  const Value rest = e.map(maps::add_constant, {negative}, "n", 1.0);
  const Value bend = e.map(maps::mul, {t, rest}, "v");
  return e.map(maps::add, {s, bend}, "v");
}

void lower(Emitter& e, const Op& op) {
  gated_backward_lower(e, op, pairs::swiglu_backward, activated, slope);
}

}  // namespace
}  // namespace in_swiglu_backward

constinit const Operator operators::swiglu_backward{
    .name = "swiglu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula =
        "(dg, du) = (dy·u·(s + t·(1 - s)), dy·t), s = sigmoid(g), t = g·s; recomputed y = t·u",
    .reads = {kDy, {"gu", "M", "2N"}},
    .write = OperandSpec{"dgu", "M", "2N"},
    .flops = in_swiglu_backward::count,
    .sum_length = one_term,
    .reference = in_swiglu_backward::compute,
    .lower = in_swiglu_backward::lower,
    .extent = gated_backward_extent,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .also_writes = kY,
    .in_parts = gated_in_parts,
    .gate = {
        .activation = operators::silu, .gradient = operators::silu_backward, .backward = true}};

}  // namespace fuseline
