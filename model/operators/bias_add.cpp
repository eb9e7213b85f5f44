// A bias, one value a column.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_bias_add {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x + z; });
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value b = e.per_col(op.reads[1], "b");
  e.produce(op.writes[0], e.map(maps::add, {x, b}, "y"));
}

// The bias's gradient carries the name of the GEMM's: "qkv_bias" gives "db_qkv".
void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.pass(0, a.dy());
  if (!a.wants(1)) return;
  const std::string name = op.name.substr(0, op.name.rfind("_bias"));
  a.emit("db_" + name, operators::column_sum, {a.dy()}, {a.target(1)});
}

}  // namespace
}  // namespace in_bias_add

constinit const Operator operators::bias_add{.name = "bias_add",
                                             .op_class = OpClass::pointwise,
                                             .locality = Locality::tile_local,
                                             .formula = "y = x + b",
                                             .reads = {kX, {"b", "1", "N"}},
                                             .write = kY,
                                             .flops = per_output<1>,
                                             .sum_length = one_term,
                                             .reference = in_bias_add::compute,
                                             .lower = in_bias_add::lower,
                                             .extent = widest,
                                             .gradient = in_bias_add::gradient,
                                             .framework = by_layout,
                                             .minor = true,
                                             .library_epilogue = true,
                                             .called = no_attributes};

}  // namespace fuseline
