// The sum of every column: the gradient of a bias.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < x.cols; ++n) {
    double sum = 0;
    for (std::int64_t m = 0; m < x.rows; ++m) sum += x(m, n);
    y(0, n) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value sum = e.column_sum(e.tile(op.reads[0]), "s");
  e.produce(op.writes[0], sum, true, Axis::cols);
}

}  // namespace

constinit const Operator operators::column_sum{
    .name = "column_sum",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "y = sum of each column",
    .reads = {kX},
    .write = OperandSpec{"y", "1", "N"},
    .flops = per_input<1>,
    .sum_length = input_rows,
    .reference = compute,
    .lower = lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
