// The same numbers behind each other: what a library that takes dense rows does to a slice first.
#include "model/backward_adjoint.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_copy {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x; });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::copy, "x"); }

void gradient(Adjoint& a) { a.pass(0, a.dy()); }

}  // namespace
}  // namespace in_copy

constinit const Operator operators::copy{.name = "copy",
                                         .op_class = OpClass::pointwise,
                                         .locality = Locality::tile_local,
                                         .formula = "y = x",
                                         .reads = {kX},
                                         .write = kY,
                                         .flops = per_output<0>,
                                         .sum_length = one_term,
                                         .reference = in_copy::compute,
                                         .lower = in_copy::lower,
                                         .extent = widest,
                                         .gradient = in_copy::gradient,
                                         .framework = by_layout};

}  // namespace fuseline
