// The sum of the gradients of one tensor's readers.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_grad_add {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  map2(g, op, in, out, [](double x, double z) { return x + z; });
}

void lower(Emitter& e, const Op& op) { binary(e, op, maps::add, "h"); }

}  // namespace
}  // namespace in_grad_add

constinit const Operator operators::grad_add{
    .name = "grad_add",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x + z, gradients of one tensor's readers",
    .reads = {kX, {"z", "M", "N"}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = in_grad_add::compute,
    .lower = in_grad_add::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout};

}  // namespace fuseline
