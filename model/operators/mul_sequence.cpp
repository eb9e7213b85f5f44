// A factor for every column of a sequence, as a framework applies it.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<const double> s = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const std::int64_t tokens = op.attributes.as<Sequences>().tokens;
  FUSELINE_ASSERT(tokens > 0 && s.rows * tokens == x.rows, op.name);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, n) = x(m, n) * s(m / tokens, n);
}

void lower(Emitter& e, const Op& op) {
  const Value x = e.tile(op.reads[0]);
  const Value s = e.sequence(op.reads[1], op.attributes.as<Sequences>().tokens, "s");
  e.produce(op.writes[0], e.map(maps::mul, {x, s}, "y"));
}

}  // namespace

constinit const Operator operators::mul_sequence{
    .name = "mul_sequence",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "y = x · s, one row of s for every sequence",
    .reads = {kX, {"s", "B", "N"}},
    .write = kY,
    .flops = per_output<1>,
    .sum_length = one_term,
    .reference = compute,
    .lower = lower,
    .extent = widest,
    .gradient = no_gradient(kMadeLater),
    .framework = always<Implementation::strided>};

}  // namespace fuseline
