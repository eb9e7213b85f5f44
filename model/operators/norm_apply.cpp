// A norm again, from its saved statistics.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_norm_apply {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  const Flops scaled = normalising_flops(op, 1) + per_input<1>(graph, op);
  return op.reads.size() > 3 ? scaled + per_input<1>(graph, op) : scaled;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> stats = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = normalised(x, stats, m, n) * w(0, n);
  if (op.reads.size() < 4) return;
  const View<const double> bias = read(g, in, op.reads[3]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) += bias(0, n);
}

void lower(Emitter& e, const Op& op) {
  const Value z = normalised(e, e.tile(op.reads[0]), op.reads[1]);
  const Value g = e.per_col(op.reads[2], "g");
  Value y = e.map(maps::mul, {z, g}, "hn");
  if (op.reads.size() > 3) y = e.map(maps::add, {y, e.per_col(op.reads[3], "b")}, "hn");
  e.produce(op.writes[0], y);
}

}  // namespace
}  // namespace in_norm_apply

constinit const Operator operators::norm_apply{
    .name = "norm_apply",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = z·w (+ b), z = r·x (- r·mean)",
    .reads = {kX, kStats, {"w", "1", "N"}, {"b", "1", "N", true}},
    .write = kY,
    .flops = in_norm_apply::count,
    .sum_length = one_term,
    .reference = in_norm_apply::compute,
    .lower = in_norm_apply::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
