// Y = x³.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_cube {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * x * x; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile_or_row(op.reads[0]);
  const Value square = e.map(maps::square, {x}, "x2");
  e.produce(op.writes[0], e.map(maps::mul, {square, x}, "x3"));
}

}  // namespace
}  // namespace in_cube

constinit const Operator operators::cube{.name = "cube",
                                         .op_class = OpClass::pointwise,
                                         .locality = Locality::tile_local,
                                         .formula = "y = x³",
                                         .reads = {kX},
                                         .write = kY,
                                         .flops = per_output<2>,
                                         .sum_length = one_term,
                                         .reference = in_cube::compute,
                                         .lower = in_cube::lower,
                                         .extent = widest,
                                         .gradient = no_gradient(kOfAGradient),
                                         .framework = by_layout,
                                         .called = no_attributes};

}  // namespace fuseline
