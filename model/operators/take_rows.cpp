// Rows in another order, each as often as it has places: the tokens of every expert behind each
// other.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/rows.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_take_rows {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> order = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t each = op.attributes.as<Places>().each;
  for (std::int64_t p = 0; p < y.rows; ++p) {
    const std::int64_t row = index_at(order, p, x.rows * each, op) / each;
    for (std::int64_t n = 0; n < y.cols; ++n) y(p, n) = x(row, n);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value rows = e.fresh("rows");
  e.emit(Gather{rows, op.reads[1], op.reads[0], op.attributes.as<Places>().each});
  e.produce(op.writes[0], rows);
}

Attributes called(OperatorCall& c) {
  const std::int64_t each = c.whole_or("each", 1, 1, kLargestDimension);
  c.result(c.read(1).rows, c.read(0).cols);
  return Places{each};
}

std::int64_t indices(const Graph&, const Op& op) {
  return op.reads[0].rows * op.attributes.as<Places>().each;
}

// Every row has as many places as `each` says, whose gradients add up: index_add of PyTorch, as the
// gradient of index_select is.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, operators::sum_rows, {a.dy(), a.forward_value(op.reads[1])}, {a.target(0)},
         op.attributes);
}

}  // namespace
}  // namespace in_take_rows

constinit const Operator operators::take_rows{.name = "take_rows",
                                              .op_class = OpClass::pointwise,
                                              .locality = Locality::tile_local,
                                              .formula = "y[p] = x[order[p] / each]",
                                              .reads = {{"x", "R", "N"}, {"order", "P", "1"}},
                                              .write = OperandSpec{"y", "P", "N"},
                                              .flops = per_output<0>,
                                              .sum_length = one_term,
                                              .reference = in_take_rows::compute,
                                              .lower = in_take_rows::lower,
                                              .extent = of_result,
                                              .gradient = in_take_rows::gradient,
                                              .framework = always<Implementation::vectorized>,
                                              .index_read = 1,
                                              .index_range = in_take_rows::indices,
                                              .alone = "gathers rows by their places",
                                              .called = in_take_rows::called};

}  // namespace fuseline
