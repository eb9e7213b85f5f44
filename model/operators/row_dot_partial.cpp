// Row sums that a norm's gradient needs, tile of columns by tile of columns.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_row_dot_partial {
namespace {

using namespace reference;

// Σ dy·y 2; y - b one more; Σ dy·g two more.
Flops count(const Graph& graph, const Op& op) {
  if (op.reads.size() == 2) return per_input<2>(graph, op);
  return op.reads.size() == 3 ? per_input<3>(graph, op) : per_input<5>(graph, op);
}

// Column t, or columns 2t and 2t + 1 when dy·g is summed too, for the t-th tile of columns.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> y = read(g, in, op.reads[1]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.as<PartialTile>().cols;
  const std::int64_t tiles = ceil_div(y.cols, tile);
  const std::int64_t sums = op.reads.size() > 3 ? 2 : 1;
  FUSELINE_ASSERT(partials.cols == sums * tiles, op.name);
  for (std::int64_t m = 0; m < y.rows; ++m) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      double dot = 0;
      double weighted = 0;
      for (std::int64_t n = t * tile; n < std::min((t + 1) * tile, y.cols); ++n) {
        const double bias = op.reads.size() > 2 ? read(g, in, op.reads[2])(0, n) : 0.0;
        dot += dy(m, n) * (y(m, n) - bias);
        if (sums == 2) weighted += dy(m, n) * read(g, in, op.reads[3])(0, n);
      }
      partials(m, sums * t) = dot;
      if (sums == 2) partials(m, 2 * t + 1) = weighted;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.as<PartialTile>().cols == partial_tile, op.name);
  const Value dy = e.tile(op.reads[0]);
  Value y = e.tile(op.reads[1]);
  if (op.reads.size() > 2) y = e.map(maps::sub, {y, e.per_col(op.reads[2], "b")}, "yb");
  TileReduce reduce{reductions::sum, Axis::rows, e.map(maps::mul, {dy, y}, "p"), op.writes[0]};
  if (op.reads.size() > 3)
    reduce.second = e.map(maps::mul, {dy, e.per_col(op.reads[3], "gW")}, "q");
  e.emit(reduce);
}

}  // namespace
}  // namespace in_row_dot_partial

constinit const Operator operators::row_dot_partial{
    .name = "row_dot_partial",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "sum of dy·(y - b) (and of dy·g) over each tile of columns",
    .reads = {kDy, kY, {"b", "1", "N", true}, {"g", "1", "N", true}},
    .write = OperandSpec{"partials", "M", "P"},
    .flops = in_row_dot_partial::count,
    .sum_length = tile_columns,
    .reference = in_row_dot_partial::compute,
    .lower = in_row_dot_partial::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .partial = Sums::rows,
    .minor = true};

}  // namespace fuseline
