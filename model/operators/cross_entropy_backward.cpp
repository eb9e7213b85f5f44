// The gradient of the logits.
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rows.h"

namespace fuseline {

namespace in_cross_entropy_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dloss = read(g, in, op.reads[0]);
  const View<const double> x = read(g, in, op.reads[1]);
  const View<const double> targets = read(g, in, op.reads[2]);
  const View<const double> lse = read(g, in, op.reads[3]);
  const View<double> dx = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t target = index_at(targets, m, x.cols, op);
    for (std::int64_t n = 0; n < x.cols; ++n)
      dx(m, n) = dloss(m, 0) * (std::exp(x(m, n) - lse(m, 0)) - (n == target ? 1.0 : 0.0));
  }
}

// dx = dloss·(exp(x - lse) - one_hot)
void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[1]);
  const Value lse = e.per_row(op.reads[3], "lse");
  const Value p = e.map(maps::exp, {e.map(maps::sub, {x, lse}, "d")}, "p");
  const Value one = e.one_hot(op.reads[2], op.reads[1].cols);
  const Value rest = e.map(maps::sub, {p, one}, "d");
  const Value dloss = e.per_row(op.reads[0], "dloss");
  e.produce(op.writes[0], e.map(maps::mul, {rest, dloss}, "dx"));
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[1].cols; }

}  // namespace
}  // namespace in_cross_entropy_backward

constinit const Operator operators::cross_entropy_backward{
    .name = "cross_entropy_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "dx = dloss·(exp(x - lse) - (1 in the target's column))",
    .reads = {{"dloss", "M", "1"}, kX, {"targets", "M", "1"}, {"lse", "M", "1"}},
    .write = kDx,
    .flops = per_output<4>,
    .sum_length = one_term,
    .reference = in_cross_entropy_backward::compute,
    .lower = in_cross_entropy_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .index_read = 2,
    .index_range = in_cross_entropy_backward::indices};

}  // namespace fuseline
