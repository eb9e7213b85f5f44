// A factor for every column of a sequence, as a framework applies it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/sequences.h"

namespace fuseline {

namespace in_mul_sequence {
namespace {

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  with_sequence(g, op, in, out, [](double x, double s) { return x * s; });
}

void lower(Emitter& e, const Op& op) { with_sequence(e, op, maps::mul); }

void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(1)) sum_gradient_of_sequences(a, 1, "ds_" + op.name, a.forward_value(op.reads[0]));
  if (a.wants(0))
    a.emit("d_" + op.name, operators::mul_sequence, {a.dy(), op.reads[1]}, {a.target(0)},
           op.attributes);
}

}  // namespace
}  // namespace in_mul_sequence

constinit const Operator operators::mul_sequence{
    .name = "mul_sequence",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x · s, one row of s for every sequence",
    .reads = {kX, {"s", "B", "N"}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = in_mul_sequence::compute,
    .lower = in_mul_sequence::lower,
    .extent = widest,
    .gradient = in_mul_sequence::gradient,
    .framework = always<Implementation::strided>};

}  // namespace fuseline
