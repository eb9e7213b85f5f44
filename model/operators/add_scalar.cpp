// Y = x + scalar.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_add_scalar {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [&](double x) { return x + op.attributes.as<Scalar>().value; });
}

void lower(Emitter& e, const Op& op) {
  unary(e, op, maps::add_constant, "m", op.attributes.as<Scalar>().value);
}

void gradient(Adjoint& a) { a.pass(0, a.dy()); }

}  // namespace
}  // namespace in_add_scalar

constinit const Operator operators::add_scalar{.name = "add_scalar",
                                               .op_class = OpClass::pointwise,
                                               .locality = Locality::tile_local,
                                               .formula = "y = x + scalar",
                                               .reads = {kX},
                                               .write = kY,
                                               .flops = per_output<1>,
                                               .sum_length = one_term,
                                               .reference = in_add_scalar::compute,
                                               .lower = in_add_scalar::lower,
                                               .extent = widest,
                                               .gradient = in_add_scalar::gradient,
                                               .framework = by_layout};

}  // namespace fuseline
