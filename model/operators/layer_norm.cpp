// LayerNorm.
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_layer_norm {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<const double> bias = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const double width = static_cast<double>(x.cols);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double mean = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) mean += x(m, n);
    mean /= width;
    double variance = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) variance += (x(m, n) - mean) * (x(m, n) - mean);
    variance /= width;
    const double r = 1.0 / std::sqrt(variance + op.attributes.as<NormEps>().eps);
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = (x(m, n) - mean) * r * w(0, n) + bias(0, n);
    if (op.writes.size() < 2) continue;
    const View<double> stats = write(g, out, op.writes[1]);
    stats(m, 0) = r;
    stats(m, 1) = r * mean;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value mu = e.row_reduce(reductions::mean, x, "mu");
  const Value centred = e.map(maps::sub, {x, mu}, "xc");
  const Value s = e.row_reduce(reductions::sum_squares, centred, "s");
  const Value var =
      e.map(maps::scale_by_constant, {s}, "v", 1.0 / static_cast<double>(op.reads[0].cols));
  const Value shifted = e.map(maps::add_constant, {var}, "v", op.attributes.as<NormEps>().eps);
  const Value r = e.map(maps::rsqrt, {shifted}, "r");
  if (op.writes.size() > 1) {  // r and r·mean for the backward pass
    Operand to = op.writes[1];
    to.cols = 1;
    e.produce(to, r, true);
    ++to.col_begin;
    e.produce(to, e.map(maps::mul, {r, mu}, "rmu"), true);
  }
  const Value scaled = e.map(maps::mul, {centred, r}, "xr");
  const Value g = e.per_col(op.reads[1], "g");
  const Value weighted = e.map(maps::mul, {scaled, g}, "xg");
  const Value b = e.per_col(op.reads[2], "b");
  e.produce(op.writes[0], e.map(maps::add, {weighted, b}, "xn"));
}

void gradient(Adjoint& a) {
  norm_gradient(a, operators::layer_norm_backward);
  const std::string& name = a.op().name;
  if (a.wants(2)) a.emit("db_" + name, operators::column_sum, {a.dy()}, {a.target(2)});
}

}  // namespace
}  // namespace in_layer_norm

constinit const Operator operators::layer_norm{
    .name = "layer_norm",
    .op_class = OpClass::norm,
    .locality = Locality::full_row,
    .formula = "y = (x - mean x) · rsqrt(var x + eps) · w + b",
    .reads = {kX, {"w", "1", "N"}, {"b", "1", "N"}},
    .write = kY,
    .flops = per_row<7, 4>,
    .sum_length = input_columns,
    .reference = in_layer_norm::compute,
    .lower = in_layer_norm::lower,
    .extent = widest,
    .gradient = in_layer_norm::gradient,
    .framework = always<Implementation::row_norm>,
    .also_writes = kStats,
    .statistics = 2,
    .again = norm_again,
    .cheap_again = true,
    .stream = StreamCost::welford,
    .called = eps_of_call};

}  // namespace fuseline
