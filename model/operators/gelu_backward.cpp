// The gradient of GELU.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_gelu_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double dy, double x) { return dy * gelu_slope(x); });
}

void lower(Emitter& e, const Op& op) { by_slope(e, op, maps::gelu_tanh_slope); }

}  // namespace
}  // namespace in_gelu_backward

constinit const Operator operators::gelu_backward{
    .name = "gelu_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula =
        "dx = dy·((1 + h)/2 + x/2·(1 - h²)·u'), h = tanh(u), u = sqrt(2/pi)·(x + 0.044715 x³)",
    .reads = {kDy, kX},
    .write = kDx,
    .flops = per_output<18>,
    .sum_length = one_term,
    .reference = in_gelu_backward::compute,
    .lower = in_gelu_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
