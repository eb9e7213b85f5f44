// A row vector times a matrix of weights, as a sum along each of the matrix's rows. A GEMM of one
// row would do the same, but several such vectors of one matrix share a loop over it here, which
// reads it once.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_vector_product {
namespace {

using namespace reference;

Flops count(const Graph& graph, const Op& op) {
  return per_input<2>(graph, op) + (op.reads.size() > 2 ? per_output<1>(graph, op) : Flops{});
}

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> w = read(g, in, op.reads[0]);
  const View<const double> v = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t n = 0; n < w.rows; ++n) {
    double sum = op.reads.size() > 2 ? read(g, in, op.reads[2])(0, n) : 0.0;
    for (std::int64_t k = 0; k < w.cols; ++k) sum += w(n, k) * v(0, k);
    y(0, n) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value w = e.tile(op.reads[0]);
  const Value v = e.per_col(op.reads[1], "v");
  Value sum = e.row_reduce(reductions::sum, e.map(maps::mul, {w, v}, "p"), "s");
  if (op.reads.size() > 2) sum = e.map(maps::add, {sum, e.per_row(op.reads[2], "b")}, "sb");
  e.produce(op.writes[0], sum, true);
}

}  // namespace
}  // namespace in_vector_product

constinit const Operator operators::vector_product{
    .name = "vector_product",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "y = v wᵀ (+ b), one sum for each row of w",
    .reads = {{"w", "N", "K"}, {"v", "1", "K"}, {"b", "1", "N", true}},
    .write = OperandSpec{"y", "1", "N"},
    .flops = in_vector_product::count,
    .sum_length = input_columns,
    .reference = in_vector_product::compute,
    .lower = in_vector_product::lower,
    .extent = of_operand,
    .gradient = no_gradient("rewrites make it of a graph that has its gradient"),
    .framework = always<Implementation::framework_reduce>};

}  // namespace fuseline
