// A norm's gradient behind the GEMM that makes its operand.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_norm_backward_deferred {
namespace {

using namespace reference;

// γ·p, x̂·c, -, ·r, + residual gradient where there is one; the mean of a LayerNorm one more
// subtraction.
Flops count(const Graph& graph, const Op& op) {
  Flops count = normalising_flops(op, 3) + per_input<4>(graph, op);
  if (op.reads.size() > 5) count += per_input<1>(graph, op);
  if (op.reads[4].cols == 2) count += per_input<1>(graph, op);
  return count;
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> h = read(g, in, op.reads[1]);
  const View<const double> w = read(g, in, op.reads[2]);
  const View<const double> stats = read(g, in, op.reads[3]);
  const View<const double> c = read(g, in, op.reads[4]);
  const bool has_residual = op.reads.size() > 5;
  const View<const double> residual = read(g, in, op.reads[has_residual ? 5 : 1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < h.rows; ++m) {
    const double mean = c.cols == 2 ? c(m, 1) : 0.0;
    for (std::int64_t n = 0; n < h.cols; ++n) {
      const double inner = w(0, n) * p(m, n) - normalised(h, stats, m, n) * c(m, 0) - mean;
      y(m, n) = (has_residual ? residual(m, n) : 0.0) + stats(m, 0) * inner;
    }
  }
}

// y = (dres +) r·(w·p - x̂·c0 (- c1))
void lower(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value h = e.tile(op.reads[1]);
  const Value w = e.per_col(op.reads[2], "g");
  const Value z = normalised(e, h, op.reads[3]);
  const Value c = e.per_row(column(op.reads[4], 0), "c");
  const Value g = e.map(maps::mul, {p, w}, "pg");
  const Value along = e.map(maps::mul, {z, c}, "zc");
  Value inner = e.map(maps::sub, {g, along}, "d");
  if (op.reads[4].cols == 2)
    inner = e.map(maps::sub, {inner, e.per_row(column(op.reads[4], 1), "c1")}, "d");
  const Value r = e.per_row(column(op.reads[3], 0), "r");
  const Value dh = e.map(maps::mul, {inner, r}, "dh");
  if (op.reads.size() < 6) return e.produce(op.writes[0], dh);
  const Value dres = e.tile(op.reads[5]);
  e.produce(op.writes[0], e.map(maps::add, {dres, dh}, "dres"));
}

}  // namespace
}  // namespace in_norm_backward_deferred

constinit const Operator operators::norm_backward_deferred{
    .name = "norm_backward_deferred",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = (dres +) r·(w·p - z·c0 (- c1)), z = r·h (- r·mean)",
    .reads = {{"p", "M", "N"},
              {"h", "M", "N"},
              {"w", "1", "N"},
              kStats,
              {"c", "M", "C"},
              {"dres", "M", "N", true}},
    .write = kY,
    .flops = in_norm_backward_deferred::count,
    .sum_length = one_term,
    .reference = in_norm_backward_deferred::compute,
    .lower = in_norm_backward_deferred::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
