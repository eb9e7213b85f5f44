// A factor for every column.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_mul_cols {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value g = e.per_col(op.reads[1], "g");
  e.produce(op.writes[0], e.map(maps::mul, {x, g}, "a"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1))
    a.emit("dw_" + op.name, operators::column_sum, {a.dy(), a.forward_value(op.reads[0])},
           {a.target(1)});
  if (a.wants(0)) a.emit("d_" + op.name, operators::mul_cols, {a.dy(), op.reads[1]}, {a.target(0)});
}

// With one row the weight has the shape of x, and nothing is broadcast.
Implementation framework(const Graph&, const Op& op) {
  return op.reads[0].rows == 1 ? Implementation::vectorized : Implementation::strided;
}

}  // namespace
}  // namespace in_mul_cols

constinit const Operator operators::mul_cols{.name = "mul_cols",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "y = x · w, w one value a column",
                                             .reads = {kX, {"w", "1", "N"}},
                                             .write = kY,
                                             .flops = per_output<1>,
                                             .sum_length = one_term,
                                             .reference = in_mul_cols::compute,
                                             .lower = in_mul_cols::lower,
                                             .extent = widest,
                                             .gradient = in_mul_cols::gradient,
                                             .framework = in_mul_cols::framework,
                                             .called = no_attributes};

}  // namespace fuseline
