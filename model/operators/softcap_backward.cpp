// The gradient of limited values.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softcap_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const double c = op.attributes.as<Scalar>().value;
  map2(g, op, in, out, [c](double dy, double x) {
    const double t = std::tanh(x / c);
    return dy * (1.0 - t * t);
  });
}

void lower(Emitter& e, const Op& op) {
  const double c = op.attributes.as<Scalar>().value;
  const Value dy = e.tile(op.reads[0]);
  const Value u = e.map(maps::scale_by_constant, {e.tile(op.reads[1])}, "u", 1 / c);
  const Value square = e.map(maps::square, {e.map(maps::tanh, {u}, "t")}, "q");
  const Value rest = e.map(maps::negate, {square}, "n");
  const Value slope = e.map(maps::add_constant, {rest}, "v", 1.0);
  e.produce(op.writes[0], e.map(maps::mul, {dy, slope}, "dx"));
}

}  // namespace
}  // namespace in_softcap_backward

constinit const Operator operators::softcap_backward{.name = "softcap_backward",
                                                     .op_class = OpClass::pointwise,
                                                     .locality = Locality::tile_local,
                                                     .formula = "dx = dy·(1 - tanh²(x/c))",
                                                     .reads = {kDy, kX},
                                                     .write = kDx,
                                                     .flops = per_output<5>,
                                                     .sum_length = one_term,
                                                     .reference = in_softcap_backward::compute,
                                                     .lower = in_softcap_backward::lower,
                                                     .extent = widest,
                                                     .gradient = no_gradient(kOfAGradient),
                                                     .framework = by_layout};

}  // namespace fuseline
