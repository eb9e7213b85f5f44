// RMSNorm of every head of a row, as models apply it to Q and to K.
#include "model/operators/support/head_norm.h"
#include "model/backward_adjoint.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_head_norm {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto& norm = op.attributes.as<HeadNorm>();
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t head = 0; head < x.cols; head += norm.head_width) {
      const double r = head_scale(x, norm, m, head);
      for (std::int64_t c = 0; c < norm.head_width; ++c)
        y(m, head + c) = x(m, head + c) * r * w(0, c);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value r = head_scale(e, x, op.attributes.as<HeadNorm>());
  const Value scaled = e.map(maps::mul, {x, r}, "xr");
  e.produce(op.writes[0], e.map(maps::mul, {scaled, e.table(op.reads[1])}, "xn"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  const Operand x = a.forward_value(op.reads[0]);
  if (a.wants(0))
    a.emit("d_" + op.name, operators::head_norm_backward, {a.dy(), x, op.reads[1]}, {a.target(0)},
           op.attributes);
  if (!a.wants(1)) return;
  const Operand sums = a.make("dw_" + op.name + "_heads", "[1, H·d]", Dtype::fp32, 1, x.cols);
  a.emit("dw_" + op.name + "_sum", operators::head_norm_weight_grad, {a.dy(), x}, {sums},
         op.attributes);
  a.emit("dw_" + op.name, operators::head_fold, {sums}, {a.target(1)}, op.attributes);
}

// A head is as wide as the weight.
Attributes called(OperatorCall& c) {
  const std::int64_t d = c.read(1).cols;
  if (c.read(0).cols % d != 0)
    c.refuse(
        std::to_string(c.read(0).cols) + " columns are not whole heads of " + std::to_string(d),
        "a weight as wide as a head");
  return HeadNorm{d, c.number_or("eps", 1e-6, 1e-30, 1)};
}

}  // namespace
}  // namespace in_head_norm

constinit const Operator operators::head_norm{
    .name = "head_norm",
    .op_class = OpClass::norm,
    .locality = Locality::head_local,
    .formula = "y = x · rsqrt(mean x² + eps) · w, the mean over each head",
    .reads = {kX, {"w", "1", "d"}},
    .write = kY,
    .flops = per_head<4, 3>,
    .sum_length = norm_columns,
    .reference = in_head_norm::compute,
    .lower = in_head_norm::lower,
    .extent = widest,
    .gradient = in_head_norm::gradient,
    .framework = always<Implementation::row_norm>,
    .head_width = norm_head_width,
    .called = in_head_norm::called};

}  // namespace fuseline
