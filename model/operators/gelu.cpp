// GELU, with its tanh form.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_gelu {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return gelu(x); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::gelu_tanh, "o"); }

void gradient(Adjoint& a) { element_wise_gradient(a, operators::gelu_backward); }

}  // namespace
}  // namespace in_gelu

constinit const Operator operators::gelu{
    .name = "gelu",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x/2 · (1 + tanh(sqrt(2/pi)·(x + 0.044715 x³)))",
    .reads = {kX},
    .write = kY,
    .flops = per_output<9>,
    .sum_length = one_term,
    .reference = in_gelu::compute,
    .lower = in_gelu::lower,
    .extent = widest,
    .gradient = in_gelu::gradient,
    .framework = by_layout,
    .library_epilogue = true,
    .cheap_again = true,
    .stream = StreamCost::exponential,
    .called = no_attributes};

}  // namespace fuseline
