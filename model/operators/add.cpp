// A sum of two tensors; RoPE in steps ends with one.
#include "model/operators/all_operators.h"
#include "model/operators/operator_call.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_add {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x + z; });
}

void lower(Emitter& e, const Op& op) { binary(e, op, maps::add, "y"); }

void gradient(Adjoint& a) {
  a.pass(0, a.dy());
  a.pass(1, a.dy());
}

// Two layouts meet in RoPE's sum, the slice's and the concatenation's; one token has only one.
Implementation framework(const Graph&, const Op& op) {
  return op.attributes.as<TwoLayouts>().differ ? Implementation::strided
                                               : Implementation::vectorized;
}

}  // namespace
}  // namespace in_add

constinit const Operator operators::add{.name = "add",
                                        .op_class = OpClass::pointwise,
                                        .locality = Locality::tile_local,
                                        .formula = "y = x + z",
                                        .reads = {kX, {"z", "M", "N"}},
                                        .write = kY,
                                        .flops = per_output<1>,
                                        .sum_length = one_term,
                                        .reference = in_add::compute,
                                        .lower = in_add::lower,
                                        .extent = widest,
                                        .gradient = in_add::gradient,
                                        .framework = in_add::framework,
                                        .stream = StreamCost::two_layouts,
                                        .called = no_attributes};

}  // namespace fuseline
