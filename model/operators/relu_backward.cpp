// The gradient of ReLU.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_relu_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) { return x > 0.0 ? dy : 0.0; });
}

void lower(Emitter& e, const Op& op) { by_slope(e, op, maps::step); }

}  // namespace
}  // namespace in_relu_backward

constinit const Operator operators::relu_backward{.name = "relu_backward",
                                                  .op_class = OpClass::pointwise,
                                                  .locality = Locality::tile_local,
                                                  .formula = "dx = dy where x > 0, else 0",
                                                  .reads = {kDy, kX},
                                                  .write = kDx,
                                                  .flops = per_output<2>,
                                                  .sum_length = one_term,
                                                  .reference = in_relu_backward::compute,
                                                  .lower = in_relu_backward::lower,
                                                  .extent = widest,
                                                  .gradient = no_gradient(kOfAGradient),
                                                  .framework = by_layout,
                                                  .jump_read = 1};

}  // namespace fuseline
