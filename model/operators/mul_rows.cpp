// A factor for every row, as a framework applies it.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_mul_rows {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value r = e.per_row(op.reads[1], "r");
  e.produce(op.writes[0], e.map(maps::mul, {x, r}, "y"));
}

// dx = dy·r, dr = the row's sum of dy·x.
void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1)) {
    const Operand x = a.forward_value(op.reads[0]);
    a.emit("d" + op.name + "_factor", operators::row_dot, {a.dy(), x}, {a.target(1)});
  }
  if (a.wants(0)) {
    const Operand r = a.forward_value(op.reads[1]);
    a.emit("d_" + op.name, operators::mul_rows, {a.dy(), r}, {a.target(0)});
  }
}

}  // namespace
}  // namespace in_mul_rows

constinit const Operator operators::mul_rows{.name = "mul_rows",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "y = x · r, r one value a row",
                                             .reads = {kX, {"r", "M", "1"}},
                                             .write = kY,
                                             .flops = per_output<1>,
                                             .sum_length = one_term,
                                             .reference = in_mul_rows::compute,
                                             .lower = in_mul_rows::lower,
                                             .extent = widest,
                                             .gradient = in_mul_rows::gradient,
                                             .framework = always<Implementation::strided>,
                                             .called = no_attributes};

}  // namespace fuseline
