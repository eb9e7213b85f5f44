// Y = x².
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_square {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map(g, op, in, out, [](double x) { return x * x; });
}

void lower(Emitter& e, const Op& op) { unary(e, op, maps::square, "x2"); }

}  // namespace
}  // namespace in_square

constinit const Operator operators::square{.name = "square",
                                           .op_class = OpClass::pointwise,
                                           .locality = Locality::tile_local,
                                           .formula = "y = x²",
                                           .reads = {kX},
                                           .write = kY,
                                           .flops = per_output<1>,
                                           .sum_length = one_term,
                                           .reference = in_square::compute,
                                           .lower = in_square::lower,
                                           .extent = widest,
                                           .gradient = no_gradient(kMadeLater),
                                           .framework = by_layout,
                                           .called = no_attributes};

}  // namespace fuseline
