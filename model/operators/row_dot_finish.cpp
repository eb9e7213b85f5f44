// The row sums from their partials.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/norms.h"

namespace fuseline {

namespace in_row_dot_finish {
namespace {

using namespace reference;

// The sum of the partials, and a division for each result.
Flops count(const Graph& graph, const Op& op) {
  return per_input<1>(graph, op) + per_output<1>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> partials = read(g, in, op.reads[0]);
  const View<double> c = write(g, out, op.writes[0]);
  FUSELINE_ASSERT(op.attributes.as<RowStatistics>().norm_width > 0 && partials.cols % c.cols == 0,
                  op.name);
  for (std::int64_t m = 0; m < partials.rows; ++m) {
    for (std::int64_t i = 0; i < c.cols; ++i) {
      double sum = 0;
      for (std::int64_t p = i; p < partials.cols; p += c.cols) sum += partials(m, p);
      c(m, i) = sum / static_cast<double>(op.attributes.as<RowStatistics>().norm_width);
    }
  }
}

// c = sum of the partials / D, or of the even and of the odd ones.
void lower(Emitter& e, const Op& op) {
  const double inverse = 1.0 / static_cast<double>(op.attributes.as<RowStatistics>().norm_width);
  const std::int64_t sums = op.writes[0].cols;
  for (std::int64_t i = 0; i < sums; ++i) {
    const Value partials =
        sums == 1 ? e.tile(op.reads[0]) : e.halves(op.reads[0], 2, i == 1, "partials");
    const Value sum = e.row_reduce(reductions::sum, partials, "s");
    e.produce(column(op.writes[0], i), e.map(maps::scale_by_constant, {sum}, "c", inverse), true);
  }
}

// Two sums: each reads every second column.
RowMainloop rows(const Op& op) {
  return {op.reads[0].rows, op.reads[0].cols / (op.writes[0].cols == 2 ? 2 : 1)};
}

}  // namespace
}  // namespace in_row_dot_finish

constinit const Operator operators::row_dot_finish{.name = "row_dot_finish",
                                                   .op_class = OpClass::reduction,
                                                   .locality = Locality::full_row,
                                                   .formula = "c = sum of partials / D",
                                                   .reads = {{"partials", "M", "P"}},
                                                   .write = OperandSpec{"c", "M", "C"},
                                                   .flops = in_row_dot_finish::count,
                                                   .sum_length = input_columns,
                                                   .reference = in_row_dot_finish::compute,
                                                   .lower = in_row_dot_finish::lower,
                                                   .extent = widest,
                                                   .gradient = no_gradient(kOfAGradient),
                                                   .framework = by_layout,
                                                   .rows = in_row_dot_finish::rows,
                                                   .finishes = Sums::rows};

}  // namespace fuseline
