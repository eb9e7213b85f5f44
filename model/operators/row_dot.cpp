// The sum of a row's products with another's: the gradient of a factor that the row had.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_row_dot {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> z = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    double sum = 0;
    for (std::int64_t n = 0; n < x.cols; ++n) sum += x(m, n) * z(m, n);
    y(m, 0) = sum;
  }
}

void lower(Emitter& e, const Op& op) {
  const Value product = e.map(maps::mul, {e.tile(op.reads[0]), e.tile(op.reads[1])}, "p");
  e.produce(op.writes[0], e.row_reduce(reductions::sum, product, "dot"), true);
}

// A framework stores the products and sums them; a compiler has one loop for both.
FrameworkLaunches framework_launches(const Graph& graph, const Op& op, bool generated) {
  if (generated) return {};
  const Operand& x = op.reads[0];
  const Scratch products{"products", x.rows, x.cols, graph.tensor(x.tensor).dtype};
  LaunchList list;
  list.add("multiply", Implementation::vectorized, {x, op.reads[1]}, {products});
  list.add("sum", Implementation::framework_reduce, {products}, {op.writes[0]});
  return std::move(list).instead();
}

}  // namespace
}  // namespace in_row_dot

constinit const Operator operators::row_dot{.name = "row_dot",
                                            .op_class = OpClass::reduction,
                                            .locality = Locality::full_row,
                                            .formula = "y = sum of x·z over each row",
                                            .reads = {kX, {"z", "M", "N"}},
                                            .write = OperandSpec{"y", "M", "1"},
                                            .flops = per_input<2>,
                                            .sum_length = input_columns,
                                            .reference = in_row_dot::compute,
                                            .lower = in_row_dot::lower,
                                            .extent = of_operand,
                                            .gradient = no_gradient(kOfAGradient),
                                            .framework = always<Implementation::framework_reduce>,
                                            .framework_launches = in_row_dot::framework_launches};

}  // namespace fuseline
