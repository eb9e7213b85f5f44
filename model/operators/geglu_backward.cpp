// The gradients of gate and up, and GeGLU's output again where someone reads it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gated.h"

namespace fuseline {

namespace in_geglu_backward {
namespace {

using namespace reference;

// t = gelu(g) 9, du = dy·t, gelu' 17, ·u, ·dy; the recomputed output t·u one more.
Flops count(const Graph& graph, const Op& op) {
  return op.writes.size() > 1 ? per_input<30>(graph, op) : per_input<29>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  gated_backward_reference(g, op, in, out, gelu, gelu_slope);
}

Value activated(Emitter& e, Value gate) { return e.map(maps::gelu_tanh, {gate}, "t"); }

Value slope(Emitter& e, Value gate) { return e.map(maps::gelu_tanh_slope, {gate}, "v"); }

void lower(Emitter& e, const Op& op) {
  gated_backward_lower(e, op, pairs::geglu_backward, activated, slope);
}

}  // namespace
}  // namespace in_geglu_backward

constinit const Operator operators::geglu_backward{
    .name = "geglu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "(dg, du) = (dy·u·gelu'(g), dy·t), t = gelu(g); recomputed y = t·u",
    .reads = {kDy, {"gu", "M", "2N"}},
    .write = OperandSpec{"dgu", "M", "2N"},
    .flops = in_geglu_backward::count,
    .sum_length = one_term,
    .reference = in_geglu_backward::compute,
    .lower = in_geglu_backward::lower,
    .extent = gated_backward_extent,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .also_writes = kY,
    .in_parts = gated_in_parts,
    .gate = {
        .activation = operators::gelu, .gradient = operators::gelu_backward, .backward = true}};

}  // namespace fuseline
