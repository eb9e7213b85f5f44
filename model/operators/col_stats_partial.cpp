// Column sums, tile of rows by tile of rows.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_col_stats_partial {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  if (op.reads.size() == 1) return per_input<1>(graph, op);
  const Flops product = per_input<2>(graph, op);
  return op.reads.size() > 2 ? product + normalising_flops(op, 2) : product;
}

// Partials of column n are row n; its t-th element covers the t-th tile of rows.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.as<PartialTile>().rows;
  FUSELINE_ASSERT(partials.cols == ceil_div(x.rows, tile), op.name);
  const auto factor = [&](std::int64_t m, std::int64_t n) {
    if (op.reads.size() < 2) return 1.0;
    const View<const double> h = read(g, in, op.reads[1]);
    return op.reads.size() < 3 ? h(m, n) : normalised(h, read(g, in, op.reads[2]), m, n);
  };
  for (std::int64_t n = 0; n < x.cols; ++n) {
    for (std::int64_t t = 0; t < partials.cols; ++t) {
      double sum = 0;
      for (std::int64_t m = t * tile; m < std::min((t + 1) * tile, x.rows); ++m)
        sum += x(m, n) * factor(m, n);
      partials(n, t) = sum;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.as<PartialTile>().rows == partial_tile, op.name);
  Value x = e.tile(op.reads[0]);
  if (op.reads.size() > 1) {
    Value z = e.tile(op.reads[1]);
    if (op.reads.size() > 2) z = normalised(e, z, op.reads[2]);
    x = e.map(maps::mul, {x, z}, "p");
  }
  e.emit(TileReduce{reductions::sum, Axis::cols, x, op.writes[0]});
}

}  // namespace
}  // namespace in_col_stats_partial

constinit const Operator operators::col_stats_partial{
    .name = "col_stats_partial",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "sum of x (·z, z = r·h (- r·mean), or z = h) over each tile of rows",
    .reads = {kX, {"h", "M", "N", true}, {"stats", "M", "C", true}},
    .write = OperandSpec{"partials", "N", "P"},
    .flops = in_col_stats_partial::count,
    .sum_length = tile_rows,
    .reference = in_col_stats_partial::compute,
    .lower = in_col_stats_partial::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .partial = Sums::columns,
    .minor = true};

}  // namespace fuseline
