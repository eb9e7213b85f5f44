// An operator from outside the layers, in one file: QuickGELU, x · sigmoid(1.702 x), and the
// operator of its gradient. Nothing else in the project names it.
#include "tests/extension/quick_gelu.h"

#include <cmath>

#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline::extension {

namespace {

using namespace reference;

constexpr double kSlope = 1.702;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * sigmoid(kSlope * x); });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value s = e.map(MapFn::sigmoid, {e.map(MapFn::scale_by_constant, {x}, "u", kSlope)}, "s");
  e.produce(op.writes[0], e.map(MapFn::mul, {x, s}, "o"));
}

void gradient(Adjoint& a) { element_wise_gradient(a, quick_gelu_backward); }

// dx = dy · s · (1 + 1.702 x (1 - s)), s = sigmoid(1.702 x)
void compute_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) {
    const double s = sigmoid(kSlope * x);
    return dy * s * (1.0 + kSlope * x * (1.0 - s));
  });
}

void lower_backward(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value u = e.map(MapFn::scale_by_constant, {e.tile(op.reads[1])}, "u", kSlope);
  const Value s = e.map(MapFn::sigmoid, {u}, "s");
  const Value rest = e.map(MapFn::add_constant, {e.map(MapFn::negate, {s}, "n")}, "n", 1.0);
  const Value bend = e.map(MapFn::add_constant, {e.map(MapFn::mul, {u, rest}, "v")}, "v", 1.0);
  const Value slope = e.map(MapFn::mul, {s, bend}, "v");
  e.produce(op.writes[0], e.map(MapFn::mul, {dy, slope}, "dx"));
}

}  // namespace

constinit const Operator quick_gelu{.name = "quick_gelu",
                                    .op_class = OpClass::pointwise,
                                    .locality = Locality::tile_local,
                                    .formula = "y = x · sigmoid(1.702 x)",
                                    .reads = {kX},
                                    .write = kY,
                                    .flops = per_output<5>,
                                    .sum_length = one_term,
                                    .reference = compute,
                                    .lower = lower,
                                    .extent = widest,
                                    .gradient = gradient,
                                    .framework = by_layout,
                                    .stream = StreamCost::exponential};

constinit const Operator quick_gelu_backward{.name = "quick_gelu_backward",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "dx = dy·s·(1 + 1.702 x (1 - s))",
                                             .reads = {kDy, kX},
                                             .write = kDx,
                                             .flops = per_output<9>,
                                             .sum_length = one_term,
                                             .reference = compute_backward,
                                             .lower = lower_backward,
                                             .extent = widest,
                                             .gradient = no_gradient(kOfAGradient),
                                             .framework = by_layout};

namespace {

const AddedOperator added(quick_gelu);
const AddedOperator added_backward(quick_gelu_backward);

}  // namespace

}  // namespace fuseline::extension
