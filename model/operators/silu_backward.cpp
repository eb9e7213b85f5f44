// The gradient of SiLU.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_silu_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) {
    const double s = sigmoid(x);
    return dy * s * (1.0 + x * (1.0 - s));
  });
}

// dx = dy·s·(1 + x·(1 - s))
void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value s = e.map(maps::sigmoid, {x}, "s");
  const Value negative = e.map(maps::negate, {s}, "n");
  const Value rest = e.map(maps::add_constant, {negative}, "n", 1.0);
  const Value bend = e.map(maps::mul, {x, rest}, "v");
  const Value one = e.map(maps::add_constant, {bend}, "v", 1.0);
  const Value slope = e.map(maps::mul, {s, one}, "v");
  e.produce(op.writes[0], e.map(maps::mul, {dy, slope}, "dx"));
}

}  // namespace
}  // namespace in_silu_backward

constinit const Operator operators::silu_backward{
    .name = "silu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "dx = dy·s·(1 + x·(1 - s)), s = sigmoid(x)",
    .reads = {kDy, kX},
    .write = kDx,
    .flops = per_output<8>,
    .sum_length = one_term,
    .reference = in_silu_backward::compute,
    .lower = in_silu_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
