// The gradient of a norm's weight.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_norm_weight_grad {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  return normalising_flops(op, 2) + per_input<2>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> stats = read(g, in, op.reads[2]);
  const View<double> dw = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < x.cols; ++n) {
    double sum = 0;
    for (std::int64_t m = 0; m < x.rows; ++m) sum += dy(m, n) * normalised(x, stats, m, n);
    dw(0, n) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value z = normalised(e, e.tile(op.reads[1]), op.reads[2]);
  const Value product = e.map(maps::mul, {dy, z}, "p");
  e.produce(op.writes[0], e.column_sum(product, "dg"), true, Axis::cols);
}

}  // namespace
}  // namespace in_norm_weight_grad

constinit const Operator operators::norm_weight_grad{
    .name = "norm_weight_grad",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "dw = sum over rows of dy·z, z = r·x (- r·mean)",
    .reads = {kDy, kX, kStats},
    .write = OperandSpec{"dw", "1", "N"},
    .flops = in_norm_weight_grad::count,
    .sum_length = input_rows,
    .reference = in_norm_weight_grad::compute,
    .lower = in_norm_weight_grad::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>,
    .leads = true};

}  // namespace fuseline
