// SwiGLU of gate and up, side by side or adjacent columns.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gated.h"

namespace fuseline {

namespace in_swiglu {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  gated_reference(g, op, in, out, [](double x) { return x * sigmoid(x); });
}

void lower(Emitter& e, const Op& op) {
  gated_lower(e, op, pairs::swiglu,
              [](Emitter& to, Value gate) { return to.map(maps::silu, {gate}, "t"); });
}

void gradient(Adjoint& a) { gated_gradient(a, operators::swiglu_backward); }

}  // namespace
}  // namespace in_swiglu

constinit const Operator operators::swiglu{
    .name = "swiglu",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = g · sigmoid(g) · u for each pair (g, u)",
    .reads = {{"gu", "M", "2N"}},
    .write = kY,
    .flops = per_output<5>,
    .sum_length = one_term,
    .reference = in_swiglu::compute,
    .lower = in_swiglu::lower,
    .extent = gated_extent,
    .gradient = in_swiglu::gradient,
    .framework = by_layout,
    .given_by_gradient = true,
    .cheap_again = true,
    .stream = StreamCost::exponential,
    .gate = {.activation = operators::silu, .gradient = operators::silu_backward},
    .called = no_attributes};

}  // namespace fuseline
