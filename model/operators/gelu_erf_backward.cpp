// The gradient of the exact GELU.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_gelu_erf_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  static constexpr double kDensity = 0.3989422804014327;  // 1 / sqrt(2π)
  map2(g, op, in, out, [](double dy, double x) {
    return dy * (0.5 * (1.0 + std::erf(x / std::sqrt(2.0))) + x * kDensity * std::exp(-x * x / 2));
  });
}

void lower(Emitter& e, const Op& op) { by_slope(e, op, maps::gelu_erf_slope); }

}  // namespace
}  // namespace in_gelu_erf_backward

constinit const Operator operators::gelu_erf_backward{
    .name = "gelu_erf_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "dx = dy·((1 + erf(x/sqrt(2)))/2 + x·exp(-x²/2)/sqrt(2 pi))",
    .reads = {kDy, kX},
    .write = kDx,
    .flops = per_output<10>,
    .sum_length = one_term,
    .reference = in_gelu_erf_backward::compute,
    .lower = in_gelu_erf_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .stream = StreamCost::error_slope};

}  // namespace fuseline
