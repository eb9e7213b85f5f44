// log(1 + exp(x)): steps of a state-space model are made positive by it.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softplus {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out,
      [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::softplus, "o"); }

void gradient(Adjoint& a) { element_wise_gradient(a, operators::softplus_backward); }

}  // namespace
}  // namespace in_softplus

constinit const Operator operators::softplus{.name = "softplus",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "y = log(1 + exp(x))",
                                             .reads = {kX},
                                             .write = kY,
                                             .flops = per_output<3>,
                                             .sum_length = one_term,
                                             .reference = in_softplus::compute,
                                             .lower = in_softplus::lower,
                                             .extent = widest,
                                             .gradient = in_softplus::gradient,
                                             .framework = by_layout,
                                             .stream = StreamCost::exponential,
                                             .called = no_attributes};

}  // namespace fuseline
