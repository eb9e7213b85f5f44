// A scale and a shift for every column of a sequence, as AdaLN makes them from its condition.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"
#include "model/operators/support/sequences.h"

namespace fuseline {

namespace in_modulate {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> scale = read(g, in, op.reads[1]);
  const View<const double> shift = read(g, in, op.reads[2]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t tokens = op.attributes.as<Sequences>().tokens;
  FUSELINE_ASSERT(tokens > 0 && scale.rows * tokens == x.rows, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n)
      y(m, n) = x(m, n) * (1.0 + scale(m / tokens, n)) + shift(m / tokens, n);
}

void lower(Emitter& e, const Op& op) {
  const std::int64_t tokens = op.attributes.as<Sequences>().tokens;
  const Value x = e.tile(op.reads[0]);
  const Value scale = e.sequence(op.reads[1], tokens, "scale");
  const Value factor = e.map(maps::add_constant, {scale}, "f", 1.0);
  const Value scaled = e.map(maps::mul, {x, factor}, "xs");
  e.produce(op.writes[0],
            e.map(maps::add, {scaled, e.sequence(op.reads[2], tokens, "shift")}, "y"));
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  sum_gradient_of_sequences(a, 2, "dshift_" + op.name);
  if (a.wants(1))
    sum_gradient_of_sequences(a, 1, "dscale_" + op.name, a.forward_value(op.reads[0]));
  if (a.wants(0))
    a.emit("d_" + op.name, operators::modulate_backward, {a.dy(), op.reads[1]}, {a.target(0)},
           op.attributes);
}

Attributes called(OperatorCall& c) { return sequences_of_call(c, 1); }

}  // namespace
}  // namespace in_modulate

constinit const Operator operators::modulate{
    .name = "modulate",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x · (1 + scale) + shift, one row of each for every sequence",
    .reads = {kX, {"scale", "B", "N"}, {"shift", "B", "N"}},
    .write = kY,
    .flops = per_output<3>,
    .sum_length = one_term,
    .reference = in_modulate::compute,
    .lower = in_modulate::lower,
    .extent = widest,
    .gradient = in_modulate::gradient,
    .framework = always<Implementation::strided>,
    .called = in_modulate::called};

}  // namespace fuseline
