// The same numbers in another type.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_cast {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x; });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::copy, "x"); }

void gradient(Adjoint& a) { a.emit("d_" + a.op().name, operators::cast, {a.dy()}, {a.target(0)}); }

// Elements that grow defeat the 16-byte accesses on both sides.
Implementation framework(const Graph& graph, const Op& op) {
  return graph.tensor(op.writes[0].tensor).dtype == Dtype::fp32 ? Implementation::strided
                                                                : Implementation::vectorized;
}

}  // namespace
}  // namespace in_cast

constinit const Operator operators::cast{.name = "cast",
                                         .op_class = OpClass::pointwise,
                                         .locality = Locality::tile_local,
                                         .formula = "y = x in another type",
                                         .reads = {kX},
                                         .write = kY,
                                         .flops = per_output<0>,
                                         .sum_length = one_term,
                                         .reference = in_cast::compute,
                                         .lower = in_cast::lower,
                                         .extent = widest,
                                         .gradient = in_cast::gradient,
                                         .framework = in_cast::framework};

}  // namespace fuseline
