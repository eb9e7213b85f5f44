// The numbers of a matrix in another order, as one number a row: the gates of the rows that experts
// made.
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

namespace in_take_numbers {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> order = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  for (std::int64_t p = 0; p < y.rows; ++p) {
    const std::int64_t place = index_at(order, p, x.rows * x.cols, op);
    y(p, 0) = x(place / x.cols, place % x.cols);
  }
}

void lower(Emitter& e, const Op& op) {
  const Value number = e.fresh("r");
  e.emit(GatherNumber{number, op.reads[1], op.reads[0]});
  e.produce(op.writes[0], number, true);
}

Attributes called(OperatorCall& c) {
  c.result(c.read(1).rows, 1);
  c.result_in(Dtype::fp32);
  return {};
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].rows * op.reads[0].cols; }

// The gather, and a cast to the type of the rows that the numbers go to.
FrameworkLaunches framework_launches(const Graph&, const Op&, bool generated) {
  if (generated) return {};
  LaunchList list;
  list.add_short({"cast"});
  return std::move(list).beside();
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.emit("d_" + op.name, operators::place_numbers, {a.dy(), a.forward_value(op.reads[1])},
         {a.target(0)});
}

}  // namespace
}  // namespace in_take_numbers

constinit const Operator operators::take_numbers{
    .name = "take_numbers",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y[p] = the number at place order[p] of x",
    .reads = {{"x", "R", "C"}, {"order", "P", "1"}},
    .write = OperandSpec{"y", "P", "1"},
    .flops = per_output<0>,
    .sum_length = one_term,
    .reference = in_take_numbers::compute,
    .lower = in_take_numbers::lower,
    .extent = of_result,
    .gradient = in_take_numbers::gradient,
    .framework = always<Implementation::vectorized>,
    .index_read = 1,
    .index_range = in_take_numbers::indices,
    .framework_launches = in_take_numbers::framework_launches,
    .called = in_take_numbers::called};

}  // namespace fuseline
