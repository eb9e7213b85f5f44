// The sum of every column, or of the products of two: the gradients of a bias and of a factor.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_column_sum {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  return op.reads.size() > 1 ? per_input<2>(graph, op) : per_input<1>(graph, op);
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < x.cols; ++n) {
    double sum = 0;
    for (std::int64_t m = 0; m < x.rows; ++m)
      sum += op.reads.size() > 1 ? x(m, n) * read(g, in, op.reads[1])(m, n) : x(m, n);
    y(0, n) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.reads.size() > 1) x = e.map(maps::mul, {x, e.tile(op.reads[1])}, "p");
  const Value sum = e.column_sum(x, "s");
  e.produce(op.writes[0], sum, true, Axis::cols);
}

}  // namespace
}  // namespace in_column_sum

constinit const Operator operators::column_sum{
    .name = "column_sum",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "y = sum of each column of x (·z)",
    .reads = {kX, {"z", "M", "N", true}},
    .write = OperandSpec{"y", "1", "N"},
    .flops = in_column_sum::count,
    .sum_length = input_rows,
    .reference = in_column_sum::compute,
    .lower = in_column_sum::lower,
    .extent = of_operand,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
