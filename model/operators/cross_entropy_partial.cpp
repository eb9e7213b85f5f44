// Maximum, sum of exponentials and target of every row, tile of columns by tile.
#include <algorithm>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rows.h"

namespace fuseline {

namespace in_cross_entropy_partial {
namespace {

using namespace reference;

// Thirds of the columns: maxima, sums, targets of the tiles of columns.
void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> targets = read(g, in, op.reads[1]);
  const View<double> partials = write(g, out, op.writes[0]);
  const std::int64_t tile = op.attributes.as<PartialTile>().cols;
  const std::int64_t tiles = ceil_div(x.cols, tile);
  FUSELINE_ASSERT(partials.cols == 3 * tiles, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const std::int64_t target = index_at(targets, m, x.cols, op);
    for (std::int64_t t = 0; t < tiles; ++t) {
      const OnlineSum s = online_sum(x, m, t * tile, std::min((t + 1) * tile, x.cols));
      partials(m, t) = s.top;
      partials(m, tiles + t) = s.sum;
      partials(m, 2 * tiles + t) = target / tile == t ? x(m, target) : 0.0;
    }
  }
}

void lower(Emitter& e, const Op& op) {
  FUSELINE_ASSERT(op.attributes.as<PartialTile>().cols == partial_tile, op.name);
  e.emit(OnlineLogSumExp{e.tile(op.reads[0]), op.reads[1], op.writes[0]});
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].cols; }

}  // namespace
}  // namespace in_cross_entropy_partial

constinit const Operator operators::cross_entropy_partial{
    .name = "cross_entropy_partial",
    .op_class = OpClass::reduction,
    .locality = Locality::tile_local,
    .formula = "max x, sum of exp(x - max x) and the target's x over each tile of columns",
    .reads = {kX, {"targets", "M", "1"}},
    .write = OperandSpec{"partials", "M", "P"},
    .flops = per_input<4>,
    .sum_length = tile_columns,
    .reference = in_cross_entropy_partial::compute,
    .lower = in_cross_entropy_partial::lower,
    .extent = of_operand,
    .gradient = no_gradient(kMadeLater),
    .framework = by_layout,
    .index_read = 1,
    .index_range = in_cross_entropy_partial::indices,
    .partial = Sums::rows,
    .minor = true};

}  // namespace fuseline
