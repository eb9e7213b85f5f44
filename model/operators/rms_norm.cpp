// RMSNorm.
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

namespace in_rms_norm {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> w = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double squares = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) squares += x(m, n) * x(m, n);
    const double r =
        1.0 / std::sqrt(squares / static_cast<double>(x.cols) + op.attributes.as<NormEps>().eps);
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = x(m, n) * r * w(0, n);
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = r;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value s = e.row_reduce(reductions::sum_squares, x, "s");
  const Value mean =
      e.map(maps::scale_by_constant, {s}, "m", 1.0 / static_cast<double>(op.reads[0].cols));
  const Value shifted = e.map(maps::add_constant, {mean}, "m", op.attributes.as<NormEps>().eps);
  const Value r = e.map(maps::rsqrt, {shifted}, "r");
  if (op.writes.size() > 1) e.produce(op.writes[1], r, true);
  const Value scaled = e.map(maps::mul, {x, r}, "xr");
  const Value g = e.per_col(op.reads[1], "g");
  e.produce(op.writes[0], e.map(maps::mul, {scaled, g}, "xn"));
}

void gradient(Adjoint& a) { norm_gradient(a, operators::rms_norm_backward); }

}  // namespace
}  // namespace in_rms_norm

constinit const Operator operators::rms_norm{.name = "rms_norm",
                                             .op_class = OpClass::norm,
                                             .locality = Locality::full_row,
                                             .formula = "y = x · rsqrt(mean x² + eps) · w",
                                             .reads = {kX, {"w", "1", "N"}},
                                             .write = kY,
                                             .flops = per_row<4, 3>,
                                             .sum_length = input_columns,
                                             .reference = in_rms_norm::compute,
                                             .lower = in_rms_norm::lower,
                                             .extent = widest,
                                             .gradient = in_rms_norm::gradient,
                                             .framework = always<Implementation::row_norm>,
                                             .also_writes = kStats,
                                             .statistics = 1,
                                             .again = norm_again,
                                             .cheap_again = true,
                                             .called = eps_of_call};

}  // namespace fuseline
