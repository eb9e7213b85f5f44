// Y = scalar·x.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_scale {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [&](double x) { return op.attributes.as<Scalar>().value * x; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile_or_row(op.reads[0]);
  const Value y = e.map(maps::scale_by_constant, {x}, "y", op.attributes.as<Scalar>().value);
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_scale

constinit const Operator operators::scale{.name = "scale",
                                          .op_class = OpClass::pointwise,
                                          .locality = Locality::tile_local,
                                          .formula = "y = scalar·x",
                                          .reads = {kX},
                                          .write = kY,
                                          .flops = per_output<1>,
                                          .sum_length = one_term,
                                          .reference = in_scale::compute,
                                          .lower = in_scale::lower,
                                          .extent = widest,
                                          .gradient = no_gradient(kOfAGradient),
                                          .framework = by_layout};

}  // namespace fuseline
