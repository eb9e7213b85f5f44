// The gradient of the taps of a convolution along tokens.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"
#include "model/primitives/sum_taps.h"

namespace fuseline {

namespace in_conv_rows_weight_grad {
namespace {

using namespace reference;

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.reads[0].rows, op.reads[0].cols, 2, op.writes[0].rows);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<double> dw = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ConvolutionShape>();
  for (std::int64_t j = 0; j < a.taps; ++j) {
    const std::int64_t above = a.taps - 1 - j;
    for (std::int64_t c = 0; c < dw.cols; ++c) {
      double sum = 0;
      for (std::int64_t m = 0; m < dy.rows; ++m)
        if (m % a.tokens >= above) sum += dy(m, c) * x(m - above, c);
      dw(j, c) = sum;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  e.emit(SumTaps{dy, e.tile(op.reads[1]), op.writes[0], op.attributes.as<ConvolutionShape>()});
}

}  // namespace
}  // namespace in_conv_rows_weight_grad

constinit const Operator operators::conv_rows_weight_grad{
    .name = "conv_rows_weight_grad",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "dw[j] = sum over rows of dy[t] · x[t - (K - 1) + j] in each sequence",
    .reads = {kDy, kX},
    .write = OperandSpec{"dw", "K", "N"},
    .flops = in_conv_rows_weight_grad::count,
    .sum_length = input_rows,
    .reference = in_conv_rows_weight_grad::compute,
    .lower = in_conv_rows_weight_grad::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
