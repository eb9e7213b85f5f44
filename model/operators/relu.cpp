// The positive part.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_relu {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return std::max(x, 0.0); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::relu, "o"); }

void gradient(Adjoint& a) { element_wise_gradient(a, operators::relu_backward); }

}  // namespace
}  // namespace in_relu

constinit const Operator operators::relu{.name = "relu",
                                         .op_class = OpClass::pointwise,
                                         .locality = Locality::tile_local,
                                         .formula = "y = max(x, 0)",
                                         .reads = {kX},
                                         .write = kY,
                                         .flops = per_output<1>,
                                         .sum_length = one_term,
                                         .reference = in_relu::compute,
                                         .lower = in_relu::lower,
                                         .extent = widest,
                                         .gradient = in_relu::gradient,
                                         .framework = by_layout,
                                         .cheap_again = true,
                                         .called = no_attributes};

}  // namespace fuseline
