// The column sums from their partials.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_col_stats_finish {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < partials.rows; ++n) {
    double sum = 0;
    for (std::int64_t t = 0; t < partials.cols; ++t) sum += partials(n, t);
    y(0, n) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value sum = e.row_reduce(reductions::sum, e.tile(op.reads[0]), "s");
  e.produce(op.writes[0], sum, true);
}

}  // namespace
}  // namespace in_col_stats_finish

constinit const Operator operators::col_stats_finish{
    .name = "col_stats_finish",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "y = sum of partials of each column",
    .reads = {{"partials", "N", "P"}},
    .write = OperandSpec{"y", "1", "N"},
    .flops = per_input<1>,
    .sum_length = input_columns,
    .reference = in_col_stats_finish::compute,
    .lower = in_col_stats_finish::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .finishes = Sums::columns};

}  // namespace fuseline
