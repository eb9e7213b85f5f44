// Back from places to rows: what the experts made of a token, added up.
#include "model/config/config.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/launch_list.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/rows.h"
#include "model/operators/support/view.h"

namespace fuseline {

namespace in_sum_rows {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> order = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t each = op.attributes.as<Places>().each;
  for (std::int64_t m = 0; m < y.rows; ++m)
    for (std::int64_t n = 0; n < y.cols; ++n) y(m, n) = 0;
  for (std::int64_t p = 0; p < x.rows; ++p) {
    const std::int64_t row = index_at(order, p, y.rows * each, op) / each;
    for (std::int64_t n = 0; n < x.cols; ++n) y(row, n) += x(p, n);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value sum = e.fresh("sum");
  e.emit(GatherSum{sum, op.reads[1], op.reads[0], 0, op.attributes.as<Places>().each});
  e.produce(op.writes[0], sum);
}

Attributes called(OperatorCall& c) {
  const std::int64_t each = c.whole("each", 1, kLargestDimension);
  if (c.read(0).rows % each != 0)
    c.refuse("has rows that are not " + std::to_string(each) + " for each row of the result",
             "a multiple of it");
  c.result(c.read(0).rows / each, c.read(0).cols);
  return Places{each};
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].rows; }
// Zeros, the rows that the places belong to, and a kernel that adds rows to rows.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool generated) {
  LaunchList list;
  list.add_short({"zeros"});
  if (!generated) list.add_short({"rows"});
  return std::move(list).beside();
}

std::int64_t terms(const Graph&, const Op& op) { return op.attributes.as<Places>().each; }

void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, operators::take_rows, {a.dy(), a.forward_value(op.reads[1])},
         {a.target(0)}, op.attributes);
}

}  // namespace
}  // namespace in_sum_rows

constinit const Operator operators::sum_rows{
    .name = "sum_rows",
    .op_class = OpClass::reduction,
    .locality = Locality::full_column,
    .formula = "y[m] = sum of the rows x[p] with order[p] / each = m",
    .reads = {{"x", "P", "N"}, {"order", "P", "1"}},
    .write = kY,
    .flops = per_input<1>,
    .sum_length = in_sum_rows::terms,
    .reference = in_sum_rows::compute,
    .lower = in_sum_rows::lower,
    .extent = of_result,
    .gradient = in_sum_rows::gradient,
    .framework = always<Implementation::scatter_add>,
    .index_read = 1,
    .index_range = in_sum_rows::indices,
    .alone = "gathers rows by their places",
    .scatters = true,
    .framework_launches = in_sum_rows::framework_launches,
    .called = in_sum_rows::called};

}  // namespace fuseline
