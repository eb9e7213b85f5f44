// Statistics of every row, tile of columns by tile of columns.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_row_stats_partial {
namespace {

using namespace reference;

// Σh² takes 2 an element, Σh one more.
Flops count(const Graph& graph, const Op& op) {
  const bool two =
      op.writes[0].cols > ceil_div(op.reads[0].cols, op.attributes.as<PartialTile>().cols);
  return two ? per_input<3>(graph, op) : per_input<2>(graph, op);
}

// Column t (RMSNorm: Σx²) or columns 2t and 2t+1 (LayerNorm: Σx, Σx²) for the t-th tile of columns.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.as<PartialTile>().cols;
  const std::int64_t tiles = ceil_div(x.cols, tile);
  const std::int64_t statistics = partials.cols / tiles;
  FUSELINE_ASSERT(partials.cols == statistics * tiles && (statistics == 1 || statistics == 2),
                  op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    for (std::int64_t t = 0; t < tiles; ++t) {
      double sum = 0;
      double squares = 0;
      for (std::int64_t n = t * tile; n < std::min((t + 1) * tile, x.cols); ++n) {
        sum += x(m, n);
        squares += x(m, n) * x(m, n);
      }
      if (statistics == 2) partials(m, 2 * t) = sum;
      partials(m, statistics * t + statistics - 1) = squares;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.as<PartialTile>().cols == partial_tile, op.name);
  const bool moments = op.writes[0].cols > ceil_div(op.reads[0].cols, partial_tile);
  const Value x = e.tile(op.reads[0]);
  e.emit(TileReduce{moments ? reductions::sum_and_squares : reductions::sum_squares, Axis::rows, x,
                    op.writes[0]});
}

}  // namespace
}  // namespace in_row_stats_partial

constinit const Operator operators::row_stats_partial{
    .name = "row_stats_partial",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "sum of x² (and of x) over each tile of columns",
    .reads = {kX},
    .write = OperandSpec{"partials", "M", "P"},
    .flops = in_row_stats_partial::count,
    .sum_length = tile_columns,
    .reference = in_row_stats_partial::compute,
    .lower = in_row_stats_partial::lower,
    .extent = of_operand,
    .gradient = no_gradient(kMadeLater),
    .framework = by_layout,
    .partial = Sums::rows,
    .minor = true};

}  // namespace fuseline
