// GELU in its exact form.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_gelu_erf {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::gelu_erf, "o"); }

void gradient(Adjoint& a) { element_wise_gradient(a, operators::gelu_erf_backward); }

}  // namespace
}  // namespace in_gelu_erf

constinit const Operator operators::gelu_erf{.name = "gelu_erf",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "y = x/2 · (1 + erf(x/sqrt(2)))",
                                             .reads = {kX},
                                             .write = kY,
                                             .flops = per_output<5>,
                                             .sum_length = one_term,
                                             .reference = in_gelu_erf::compute,
                                             .lower = in_gelu_erf::lower,
                                             .extent = widest,
                                             .gradient = in_gelu_erf::gradient,
                                             .framework = by_layout,
                                             .cheap_again = true,
                                             .stream = StreamCost::error_function,
                                             .called = no_attributes};

}  // namespace fuseline
