// GeGLU of gate and up, side by side or adjacent columns; GELU in its tanh form.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gated.h"

namespace fuseline {

namespace in_geglu {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  gated_reference(g, op, in, out, gelu);
}

void lower(Emitter& e, const Op& op) {
  gated_lower(e, op, pairs::geglu,
              [](Emitter& to, Value gate) { return to.map(maps::gelu_tanh, {gate}, "t"); });
}

void gradient(Adjoint& a) { gated_gradient(a, operators::geglu_backward); }

}  // namespace
}  // namespace in_geglu

constinit const Operator operators::geglu{
    .name = "geglu",
    .op_class = OpClass::pointwise,
    .locality = Locality::pair_local,
    .formula = "y = gelu(g) · u for each pair (g, u), gelu in its tanh form",
    .reads = {{"gu", "M", "2N"}},
    .write = kY,
    .flops = per_output<10>,
    .sum_length = one_term,
    .reference = in_geglu::compute,
    .lower = in_geglu::lower,
    .extent = gated_extent,
    .gradient = in_geglu::gradient,
    .framework = by_layout,
    .given_by_gradient = true,
    .cheap_again = true,
    .stream = StreamCost::exponential,
    .gate = {.activation = operators::gelu, .gradient = operators::gelu_backward},
    .called = no_attributes};

}  // namespace fuseline
