// The scale and shift of a LayerNorm, deferred past a GEMM.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_layer_norm_deferred {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> stats = read(g, in, op.reads[1]);
  const View<const double> weighted = read(g, in, op.reads[2]);
  const View<const double> shift = read(g, in, op.reads[3]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n)
      y(m, n) = stats(m, 0) * x(m, n) - stats(m, 1) * weighted(0, n) + shift(0, n);
}

// y = r·x - (r·mean)·wg + wb
void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  Operand column = op.reads[1];
  column.cols = 1;
  const Value r = e.per_row(column, "r");
  ++column.col_begin;
  const Value rmu = e.per_row(column, "rmu");
  const Value wg = e.per_col(op.reads[2], "gW");
  const Value wb = e.per_col(op.reads[3], "bW");
  const Value scaled = e.map(maps::mul, {x, r}, "y");
  const Value correction = e.map(maps::mul, {rmu, wg}, "c");
  const Value centred = e.map(maps::sub, {scaled, correction}, "y");
  e.produce(op.writes[0], e.map(maps::add, {centred, wb}, "y"));
}

}  // namespace
}  // namespace in_layer_norm_deferred

constinit const Operator operators::layer_norm_deferred{
    .name = "layer_norm_deferred",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = r·x - (r·mean)·wg + wb, wg = w gamma, wb = w beta (+ bias)",
    .reads = {kX, {"stats", "M", "2"}, {"wg", "1", "N"}, {"wb", "1", "N"}},
    .write = kY,
    .flops = per_output<4>,
    .sum_length = one_term,
    .reference = in_layer_norm_deferred::compute,
    .lower = in_layer_norm_deferred::lower,
    .extent = widest,
    .gradient = no_gradient(kMadeLater),
    .framework = by_layout,
    .stream = StreamCost::deferred_welford};

}  // namespace fuseline
