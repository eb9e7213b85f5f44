// The sum that ends a residual branch.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_residual_add {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x + z; });
}

void lower(Emitter& e, const Op& op) { binary(e, op, maps::add, "h"); }

void gradient(Adjoint& a) {
  a.pass(0, a.dy());
  a.pass(1, a.dy());
}

}  // namespace
}  // namespace in_residual_add

constinit const Operator operators::residual_add{.name = "residual_add",
                                                 .op_class = OpClass::pointwise,
                                                 .locality = Locality::tile_local,
                                                 .formula = "y = x + z",
                                                 .reads = {kX, {"z", "M", "N"}},
                                                 .write = kY,
                                                 .flops = per_output<1>,
                                                 .sum_length = one_term,
                                                 .reference = in_residual_add::compute,
                                                 .lower = in_residual_add::lower,
                                                 .extent = widest,
                                                 .gradient = in_residual_add::gradient,
                                                 .framework = by_layout,
                                                 .called = no_attributes};

}  // namespace fuseline
