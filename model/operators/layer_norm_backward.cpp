// The gradient of what LayerNorm reads.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_layer_norm_backward {
namespace {

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  norm_backward(g, op, in, out);
}

void lower(Emitter& e, const Op& op) { norm_backward(e, op); }

}  // namespace
}  // namespace in_layer_norm_backward

constinit const Operator operators::layer_norm_backward{
    .name = "layer_norm_backward",
    .op_class = OpClass::norm,
    .locality = Locality::full_row,
    .formula = "dx = r·(g - mean(g) - z·mean(g·z)), g = w·dy, z = r·x - r·mean(x)",
    .reads = {kDy, kX, {"w", "1", "N"}, {"stats", "M", "2"}},
    .write = kDx,
    .flops = per_row<10, 2>,
    .sum_length = input_columns,
    .reference = in_layer_norm_backward::compute,
    .lower = in_layer_norm_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>};

}  // namespace fuseline
