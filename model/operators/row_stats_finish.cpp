// The scale (and shift) of every row from its partial statistics.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_row_stats_finish {
namespace {

using namespace reference;

// Sum of the partials; then mean, +ε, rsqrt, or mean, mean square, μ², difference, +ε, rsqrt, r·μ.
Flops count(const Graph& graph, const Op& op) {
  return op.writes[0].cols == 2 ? per_row<1, 7>(graph, op) : per_row<1, 3>(graph, op);
}

// [M, 1]: r = rsqrt(Σx²/D + ε). [M, 2]: r = rsqrt(Σx²/D - μ² + ε) and r·μ.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> stats = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(op.attributes.as<RowStatistics>().norm_width > 0, op.name);
  const double width = static_cast<double>(op.attributes.as<RowStatistics>().norm_width);
  const std::int64_t statistics = stats.cols;
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t p = 0; p < partials.cols; p += statistics) {
      if (statistics == 2) sum += partials(m, p);
      squares += partials(m, p + statistics - 1);
    }
    const double mean = sum / width;
    const double r = 1.0 / std::sqrt(std::max(0.0, squares / width - mean * mean) +
                                     op.attributes.as<RowStatistics>().eps);
    stats(m, 0) = r;
    if (statistics == 2) stats(m, 1) = r * mean;
  }
}

// r = rsqrt(sum of partials / D + eps), and for LayerNorm also r·mean. The moments of a tile are
// two adjacent columns.
void lower(Emitter& e, const Op& op) {
  const double inverse = 1.0 / static_cast<double>(op.attributes.as<RowStatistics>().norm_width);
  const std::int64_t statistics = op.writes[0].cols;
  const auto mean_of = [&](std::int64_t first, const char* name) {
    const Value sum = e.row_sum(op.reads[0], statistics, first, "s");
    return e.map(maps::scale_by_constant, {sum}, name, inverse);
  };
  if (statistics == 1) {
    const Value m = mean_of(0, "m");
    const Value shifted =
        e.map(maps::add_constant, {m}, "m", op.attributes.as<RowStatistics>().eps);
    e.produce(op.writes[0], e.map(maps::rsqrt, {shifted}, "r"), true);
    return;
  }
  const Value mu = mean_of(0, "mu");
  const Value square = mean_of(1, "m");
  const Value mu2 = e.map(maps::square, {mu}, "mu2");
  const Value var = e.map(maps::sub, {square, mu2}, "v");
  const Value shifted =
      e.map(maps::add_constant, {var}, "v", op.attributes.as<RowStatistics>().eps);
  const Value r = e.map(maps::rsqrt, {shifted}, "r");
  const Value rmu = e.map(maps::mul, {r, mu}, "rmu");
  Operand to = op.writes[0];
  to.cols = 1;
  e.produce(to, r, true);
  ++to.col_begin;
  e.produce(to, rmu, true);
}

// Two sums: each reads every second column.
RowMainloop rows(const Op& op) {
  return {op.reads[0].rows, op.reads[0].cols / (op.writes[0].cols == 2 ? 2 : 1)};
}

}  // namespace
}  // namespace in_row_stats_finish

constinit const Operator operators::row_stats_finish{
    .name = "row_stats_finish",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "r = rsqrt(sum of partials / D + eps), or (r, r·mean)",
    .reads = {{"partials", "M", "P"}},
    .write = kStats,
    .flops = in_row_stats_finish::count,
    .sum_length = input_columns,
    .reference = in_row_stats_finish::compute,
    .lower = in_row_stats_finish::lower,
    .extent = widest,
    .gradient = no_gradient(kMadeLater),
    .framework = by_layout,
    .rows = in_row_stats_finish::rows,
    .finishes = Sums::rows};

}  // namespace fuseline
