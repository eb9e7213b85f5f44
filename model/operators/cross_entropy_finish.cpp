// The loss from its partials.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_cross_entropy_finish {
namespace {

using namespace reference;

// Of each tile: m - max, exp, ·s, and the three reductions; log, + max, - target.
Flops count(const Graph& graph, const Op& op) {
  return per_input<2>(graph, op) + checked_product<Flops>(op.reads[0].rows, 3);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> loss = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(partials.cols % 3 == 0, op.name);
  const std::int64_t tiles = partials.cols / 3;
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    double top = partials(m, 0);
    for (std::int64_t t = 1; t < tiles; ++t) top = std::max(top, partials(m, t));
    double sum = 0;
    double target = 0;
    for (std::int64_t t = 0; t < tiles; ++t) {
      sum += partials(m, tiles + t) * std::exp(partials(m, t) - top);
      target += partials(m, 2 * tiles + t);
    }
    const double lse = top + std::log(sum);
    loss(m, 0) = lse - target;
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = lse;
  }
}

// Maxima, sums and targets of the tiles are a third of the partials' columns each.
void lower(Emitter& e, const Op& op) {
  const auto third = [&](std::int64_t i) {
    Operand part = op.reads[0];
    part.cols /= 3;
    part.col_begin += i * part.cols;
    return e.tile(part);
  };
  const Value m = third(0);
  const Value top = e.row_reduce(reductions::max, m, "top");
  const Value scale = e.map(maps::exp, {e.map(maps::sub, {m, top}, "d")}, "v");
  const Value sum = e.row_reduce(reductions::sum, e.map(maps::mul, {third(1), scale}, "p"), "s");
  const Value lse = e.map(maps::add, {top, e.map(maps::log, {sum}, "l")}, "lse");
  if (op.writes.size() > 1) e.produce(op.writes[1], lse, true);
  const Value target = e.row_reduce(reductions::sum, third(2), "t");
  e.produce(op.writes[0], e.map(maps::sub, {lse, target}, "loss"), true);
}

// Maxima, sums and targets are a third of the columns each.
RowMainloop rows(const Op& op) { return {op.reads[0].rows, op.reads[0].cols / 3}; }

}  // namespace
}  // namespace in_cross_entropy_finish

constinit const Operator operators::cross_entropy_finish{
    .name = "cross_entropy_finish",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "lse = max + log of the sum of s·exp(m - max), loss = lse - sum of targets",
    .reads = {{"partials", "M", "P"}},
    .write = OperandSpec{"loss", "M", "1"},
    .flops = in_cross_entropy_finish::count,
    .sum_length = input_columns,
    .reference = in_cross_entropy_finish::compute,
    .lower = in_cross_entropy_finish::lower,
    .extent = of_operand,
    .gradient = no_gradient(kMadeLater),
    .framework = by_layout,
    .also_writes = {"lse", "M", "1"},
    .rows = in_cross_entropy_finish::rows,
    .finishes = Sums::rows};

}  // namespace fuseline
