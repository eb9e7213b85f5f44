// The loss of every row of logits.
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/rows.h"

namespace fuseline {

namespace in_cross_entropy {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> targets = read(g, in, op.reads[1]);
  const View<double> loss = write(g, out, op.writes[0]);
  for (std::int64_t m = 0; m < x.rows; ++m) {
    const OnlineSum s = online_sum(x, m, 0, x.cols);
    const double lse = s.top + std::log(s.sum);
    loss(m, 0) = lse - x(m, index_at(targets, m, x.cols, op));
    if (op.writes.size() > 1) write(g, out, op.writes[1])(m, 0) = lse;
  }
}

// Maximum, sum of exponentials and target of each row. loss = lse - target.
void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value top = e.row_reduce(reductions::max, x, "m");
  const Value p = e.map(maps::exp, {e.map(maps::sub, {x, top}, "d")}, "p");
  const Value sum = e.row_reduce(reductions::sum, p, "s");
  const Value lse = e.map(maps::add, {top, e.map(maps::log, {sum}, "l")}, "lse");
  if (op.writes.size() > 1) e.produce(op.writes[1], lse, true);
  const Value one = e.one_hot(op.reads[1], op.reads[0].cols);
  const Value target = e.row_reduce(reductions::sum, e.map(maps::mul, {x, one}, "xt"), "t");
  e.produce(op.writes[0], e.map(maps::sub, {lse, target}, "loss"), true);
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  const Operand x = a.forward_value(op.reads[0]);
  a.emit("d_" + op.name, operators::cross_entropy_backward,
         {a.dy(), x, op.reads[1], a.log_sum_exp()}, {a.target(0)}, op.attributes);
}

std::int64_t indices(const Graph&, const Op& op) { return op.reads[0].cols; }

// The loss of a token keeps more digits than the logits have.
Attributes called(OperatorCall& c) {
  c.result_in(Dtype::fp32);
  return {};
}

}  // namespace
}  // namespace in_cross_entropy

constinit const Operator operators::cross_entropy{
    .name = "cross_entropy",
    .op_class = OpClass::reduction,
    .locality = Locality::full_row,
    .formula = "loss = lse - x[target], lse = log of the sum of exp(x) over the row",
    .reads = {kX, {"targets", "M", "1"}},
    .write = OperandSpec{"loss", "M", "1"},
    .flops = per_row<4, 3>,
    .sum_length = input_columns,
    .reference = in_cross_entropy::compute,
    .lower = in_cross_entropy::lower,
    .extent = of_operand,
    .gradient = in_cross_entropy::gradient,
    .framework = always<Implementation::framework_reduce>,
    .also_writes = {"lse", "M", "1"},
    .index_read = 1,
    .index_range = in_cross_entropy::indices,
    .called = in_cross_entropy::called};

}  // namespace fuseline
