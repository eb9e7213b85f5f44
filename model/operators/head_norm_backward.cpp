// The gradient of what a norm of heads reads; the heads are measured again.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/head_norm.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_head_norm_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<double> dx = write(g, out, op.writes[0]);
  const auto& norm = op.attributes.as<HeadNorm>();
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t head = 0; head < x.cols; head += norm.head_width) {
      const double r = head_scale(x, norm, m, head);
      double along = 0;
      for (std::int64_t c = 0; c < norm.head_width; ++c)
        along += dy(m, head + c) * w(0, c) * r * x(m, head + c);
      along /= static_cast<double>(norm.head_width);
      for (std::int64_t c = 0; c < norm.head_width; ++c)
        dx(m, head + c) = r * (dy(m, head + c) * w(0, c) - r * x(m, head + c) * along);
    }
  }
}

void lower(Emitter& e, const Op& op) {
  const auto& norm = op.attributes.as<HeadNorm>();
  const Value dy = e.tile(op.reads[0]);
  const Value x = e.tile(op.reads[1]);
  const Value r = head_scale(e, x, norm);
  const Value z = e.map(maps::mul, {x, r}, "z");
  const Value g = e.map(maps::mul, {dy, e.table(op.reads[2])}, "dyg");
  const Value product = e.map(maps::mul, {g, z}, "p");
  const Value sum = e.group_reduce(reductions::sum, product, norm.head_width, "c");
  const Value c =
      e.map(maps::scale_by_constant, {sum}, "c", 1.0 / static_cast<double>(norm.head_width));
  const Value inner = e.map(maps::sub, {g, e.map(maps::mul, {z, c}, "zc")}, "d");
  e.produce(op.writes[0], e.map(maps::mul, {inner, r}, "dx"));
}

}  // namespace
}  // namespace in_head_norm_backward

constinit const Operator operators::head_norm_backward{
    .name = "head_norm_backward",
    .op_class = OpClass::norm,
    .locality = Locality::head_local,
    .formula = "dx = r·(g - z·mean(g·z)), g = w·dy, z = r·x, r and the mean of each head",
    .reads = {kDy, kX, {"w", "1", "d"}},
    .write = kDx,
    .flops = per_head<9, 4>,
    .sum_length = norm_columns,
    .reference = in_head_norm_backward::compute,
    .lower = in_head_norm_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>,
    .head_width = norm_head_width};

}  // namespace fuseline
