// Y = x · z.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_mul {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x * z; });
}

void lower(Emitter& e, const Op& op) { binary(e, op, maps::mul, "o"); }

void gradient(Adjoint& a) {
  const Op& op = a.op();
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    if (!a.wants(i)) continue;
    const Operand other = a.forward_value(op.reads[1 - i]);
    a.emit("d" + std::to_string(i) + "_" + op.name, operators::mul, {a.dy(), other}, {a.target(i)},
           op.attributes);
  }
}

}  // namespace
}  // namespace in_mul

constinit const Operator operators::mul{.name = "mul",
                                        .op_class = OpClass::pointwise,
                                        .locality = Locality::tile_local,
                                        .formula = "y = x · z",
                                        .reads = {kX, {"z", "M", "N"}},
                                        .write = kY,
                                        .flops = per_output<1>,
                                        .sum_length = one_term,
                                        .reference = in_mul::compute,
                                        .lower = in_mul::lower,
                                        .extent = widest,
                                        .gradient = in_mul::gradient,
                                        .framework = by_layout,
                                        .called = no_attributes};

}  // namespace fuseline
