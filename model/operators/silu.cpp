// Y = x · sigmoid(x).
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_silu {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * sigmoid(x); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::silu, "t"); }

void gradient(Adjoint& a) { element_wise_gradient(a, operators::silu_backward); }

}  // namespace
}  // namespace in_silu

constinit const Operator operators::silu{.name = "silu",
                                         .op_class = OpClass::pointwise,
                                         .locality = Locality::tile_local,
                                         .formula = "y = x · sigmoid(x)",
                                         .reads = {kX},
                                         .write = kY,
                                         .flops = per_output<4>,
                                         .sum_length = one_term,
                                         .reference = in_silu::compute,
                                         .lower = in_silu::lower,
                                         .extent = widest,
                                         .gradient = in_silu::gradient,
                                         .framework = by_layout,
                                         .stream = StreamCost::exponential,
                                         .called = no_attributes};

}  // namespace fuseline
