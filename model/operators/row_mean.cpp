// The mean of every row.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_row_mean {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) sum += x(m, n);
    y(m, 0) = sum / static_cast<double>(x.cols);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  e.produce(op.writes[0], e.row_reduce(reductions::mean, x, "m"), true);
}

}  // namespace
}  // namespace in_row_mean

constinit const Operator operators::row_mean{.name = "row_mean",
                                             .op_class = OpClass::reduction,
                                             .locality = Locality::full_row,
                                             .formula = "y = mean of each row",
                                             .reads = {kX},
                                             .write = OperandSpec{"y", "M", "1"},
                                             .flops = per_row<1, 1>,
                                             .sum_length = input_columns,
                                             .reference = in_row_mean::compute,
                                             .lower = in_row_mean::lower,
                                             .extent = widest,
                                             .gradient = no_gradient(kMadeLater),
                                             .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
