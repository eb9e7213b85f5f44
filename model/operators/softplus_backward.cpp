// The gradient of softplus.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softplus_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) { return dy * sigmoid(x); });
}

void lower(Emitter& e, const Op& op) { by_slope(e, op, maps::sigmoid); }

}  // namespace
}  // namespace in_softplus_backward

constinit const Operator operators::softplus_backward{.name = "softplus_backward",
                                                      .op_class = OpClass::pointwise,
                                                      .locality = Locality::tile_local,
                                                      .formula = "dx = dy·sigmoid(x)",
                                                      .reads = {kDy, kX},
                                                      .write = kDx,
                                                      .flops = per_output<4>,
                                                      .sum_length = one_term,
                                                      .reference = in_softplus_backward::compute,
                                                      .lower = in_softplus_backward::lower,
                                                      .extent = widest,
                                                      .gradient = no_gradient(kOfAGradient),
                                                      .framework = by_layout};

}  // namespace fuseline
