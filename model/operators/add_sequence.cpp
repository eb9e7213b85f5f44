// A summand for every column of a sequence, as a framework adds it.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/sequences.h"

namespace fuseline {

namespace in_add_sequence {
namespace {

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  with_sequence(g, op, in, out, [](double x, double s) { return x + s; });
}

void lower(Emitter& e, const Op& op) { with_sequence(e, op, maps::add); }

void gradient(Adjoint& a) {
  a.pass(0, a.dy());
  sum_gradient_of_sequences(a, 1, "ds_" + a.op().name);
}

}  // namespace
}  // namespace in_add_sequence

constinit const Operator operators::add_sequence{
    .name = "add_sequence",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x + s, one row of s for every sequence",
    .reads = {kX, {"s", "B", "N"}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = in_add_sequence::compute,
    .lower = in_add_sequence::lower,
    .extent = widest,
    .gradient = in_add_sequence::gradient,
    .framework = always<Implementation::strided>};

}  // namespace fuseline
