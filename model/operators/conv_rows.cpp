// A causal convolution along the tokens of each sequence, every column by itself (the short
// convolution ahead of a selective scan). A bias is an operator of its own behind it.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_conv_rows {
namespace {

using namespace reference;

std::int64_t taps(const Graph&, const Op& op) { return op.reads[1].rows; }

Flops count(const Graph&, const Op& op) {
  return checked_product<Flops>(op.writes[0].rows, op.writes[0].cols, 2, op.reads[1].rows);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<ConvolutionShape>();
  const std::int64_t halo = a.taps - 1;
  // Row of the sequence, or of what came before it (`at` < 0).
  const auto value = [&](std::int64_t sequence, std::int64_t at, std::int64_t c) {
    if (at >= 0) return x(sequence * a.tokens + at, c);
    return op.reads.size() > 2 ? read(g, in, op.reads[2])(sequence * halo + halo + at, c) : 0.0;
  };
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t c = 0; c < y.cols; ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < a.taps; ++j)
        sum += w(j, c) * value(m / a.tokens, m % a.tokens - halo + j, c);
      y(m, c) = sum;
    }
}

void lower(Emitter& e, const Op& op) {
  ConvolveRows conv{e.fresh("conv"), op.reads[0], op.reads[1], std::nullopt,
                    op.attributes.as<ConvolutionShape>()};
  if (op.reads.size() > 2) conv.before = op.reads[2];
  e.emit(conv);
  e.produce(op.writes[0], conv.out);
}

// Rows before the sequences are a state, which is not trained.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1)) {
    const Operand x = a.forward_value(op.reads[0]);
    a.emit("dw_" + op.name, operators::conv_rows_weight_grad, {a.dy(), x}, {a.target(1)},
           op.attributes);
  }
  if (a.wants(0))
    a.emit("d_" + op.name, operators::conv_rows_backward, {a.dy(), op.reads[1]}, {a.target(0)},
           op.attributes);
}

Attributes called(OperatorCall& c) {
  return ConvolutionShape{c.workload().batch, c.read(0).rows / c.workload().batch, c.read(1).rows};
}

// A framework's convolution wants the tokens side by side, columns below each other: it fills a
// padded matrix with zeros, turns the rows into it, and then computes every element by itself.
FrameworkLaunches framework_launches(const Graph& graph, const Op& op, bool generated) {
  const auto& a = op.attributes.as<ConvolutionShape>();
  if (generated || a.tokens == 1 || op.reads.size() > 2) return {};
  const Scratch padded{"padded", a.batch * op.writes[0].cols, a.tokens + a.taps - 1,
                       graph.tensor(op.reads[0].tensor).dtype};
  LaunchList list;
  list.add("pad", Implementation::vectorized, {}, {padded});
  list.add("turn", Implementation::transposing, {op.reads[0]}, {padded});
  list.add("taps", Implementation::strided, {padded, op.reads[1]}, {op.writes[0]}).each = a.taps;
  return std::move(list).instead();
}

bool turns(const Op& op) { return op.attributes.as<ConvolutionShape>().tokens > 1; }

}  // namespace
}  // namespace in_conv_rows

constinit const Operator operators::conv_rows{
    .name = "conv_rows",
    .op_class = OpClass::conv,
    .locality = Locality::row_halo,
    .formula = "y[t] = sum over j of w[j] · x[t - (K - 1) + j] in each sequence",
    .reads = {kX, {"w", "K", "N"}, {"before", "R", "N", true}},
    .write = kY,
    .flops = in_conv_rows::count,
    .sum_length = in_conv_rows::taps,
    .reference = in_conv_rows::compute,
    .lower = in_conv_rows::lower,
    .extent = of_result,
    .gradient = in_conv_rows::gradient,
    .framework = always<Implementation::vectorized>,
    .framework_launches = in_conv_rows::framework_launches,
    .framework_turns = in_conv_rows::turns,
    .called = in_conv_rows::called};

}  // namespace fuseline
