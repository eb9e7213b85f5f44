// The gradient of a convolution along tokens in its operand: the same taps, ahead of each token.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"
#include "model/primitives/convolve_back.h"

namespace fuseline {

namespace in_conv_rows_backward {
namespace {

using namespace reference;

std::int64_t taps(const Graph&, const Op& op) { return op.reads[1].rows; }

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols, 2, op.reads[1].rows);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> dx = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ConvolutionShape>();
  for (std::int64_t m = 0; m < dx.rows; ++m)
    for (std::int64_t c = 0; c < dx.cols; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < a.taps; ++j) {
        const std::int64_t ahead = a.taps - 1 - j;
        if (m % a.tokens + ahead < a.tokens) sum += w(j, c) * dy(m + ahead, c);
      }
      dx(m, c) = sum;
    }
}

void lower(Emitter& e, const Op& op) {
  const ConvolveBack back{e.fresh("dx"), op.reads[0], op.reads[1],
                          op.attributes.as<ConvolutionShape>()};
  e.emit(back);
  e.produce(op.writes[0], back.out);
}

}  // namespace
}  // namespace in_conv_rows_backward

constinit const Operator operators::conv_rows_backward{
    .name = "conv_rows_backward",
    .op_class = OpClass::conv,
    .locality = Locality::row_halo,
    .formula = "dx[t] = sum over j of w[j] · dy[t + (K - 1) - j] in each sequence",
    .reads = {kDy, {"w", "K", "N"}},
    .write = kDx,
    .flops = in_conv_rows_backward::count,
    .sum_length = in_conv_rows_backward::taps,
    .reference = in_conv_rows_backward::compute,
    .lower = in_conv_rows_backward::lower,
    .extent = of_result,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::vectorized>};

}  // namespace fuseline
