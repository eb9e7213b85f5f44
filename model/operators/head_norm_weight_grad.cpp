// The gradient of the weight of a norm of heads, before the heads are added up.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/head_norm.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_head_norm_weight_grad {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> dw = write(g, out, op.writes[0]);
  const auto& norm = op.attributes.as<HeadNorm>();
  for (std::int64_t n = 0; n < x.cols; ++n) dw(0, n) = 0;
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t head = 0; head < x.cols; head += norm.head_width) {
      const double r = head_scale(x, norm, m, head);
      for (std::int64_t c = head; c < head + norm.head_width; ++c)
        dw(0, c) += dy(m, c) * r * x(m, c);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value z = e.map(maps::mul, {x, head_scale(e, x, op.attributes.as<HeadNorm>())}, "z");
  const Value product = e.map(maps::mul, {dy, z}, "p");
  e.produce(op.writes[0], e.column_sum(product, "dg"), true, Axis::cols);
}

}  // namespace
}  // namespace in_head_norm_weight_grad

constinit const Operator operators::head_norm_weight_grad{
    .name = "head_norm_weight_grad",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "dw = sum over rows of dy·z, z = r·x, r of each head",
    .reads = {kDy, kX},
    .write = OperandSpec{"dw", "1", "N"},
    .flops = per_head<5, 3>,
    .sum_length = input_rows,
    .reference = in_head_norm_weight_grad::compute,
    .lower = in_head_norm_weight_grad::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>,
    .leads = true};

}  // namespace fuseline
