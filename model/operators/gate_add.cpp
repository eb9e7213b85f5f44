// The sum that ends a gated residual branch: a gate for every column of a sequence.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/sequences.h"

namespace fuseline {

namespace in_gate_add {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> branch = read(g, in, op.reads[1]);
  const View<const double> gate = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t tokens = op.attributes.as<Sequences>().tokens;
  FUSELINE_ASSERT(tokens > 0 && gate.rows * tokens == x.rows, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n)
      y(m, n) = x(m, n) + gate(m / tokens, n) * branch(m, n);
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value branch = e.tile(op.reads[1]);
  const Value gate = e.sequence(op.reads[2], op.attributes.as<Sequences>().tokens, "gate");
  const Value gated = e.map(maps::mul, {branch, gate}, "g");
  e.produce(op.writes[0], e.map(maps::add, {x, gated}, "h"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  a.pass(0, a.dy());
  if (a.wants(2)) sum_gradient_of_sequences(a, 2, "dgate_" + op.name, a.forward_value(op.reads[1]));
  if (a.wants(1))
    a.emit("d_" + op.name, operators::mul_sequence, {a.dy(), op.reads[2]}, {a.target(1)},
           op.attributes);
}

Attributes called(OperatorCall& c) { return sequences_of_call(c, 2); }

}  // namespace
}  // namespace in_gate_add

constinit const Operator operators::gate_add{
    .name = "gate_add",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "h = x + gate · branch, one row of gates for every sequence",
    .reads = {kX, {"branch", "M", "N"}, {"gate", "B", "N"}},
    .write = OperandSpec{"h", "M", "N"},
    .flops = per_output<2>,
    .sum_length = one_term,
    .reference = in_gate_add::compute,
    .lower = in_gate_add::lower,
    .extent = widest,
    .gradient = in_gate_add::gradient,
    .framework = always<Implementation::strided>,
    .called = in_gate_add::called};

}  // namespace fuseline
