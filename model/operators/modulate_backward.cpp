// The gradient of modulation's operand: a scale for every column of a sequence.
#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/sequences.h"

namespace fuseline {

namespace in_modulate_backward {
namespace {

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  with_sequence(g, op, in, out, [](double dy, double scale) { return dy * (1.0 + scale); });
}

void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value scale = e.sequence(op.reads[1], op.attributes.as<Sequences>().tokens, "scale");
  const Value factor = e.map(maps::add_constant, {scale}, "f", 1.0);
  e.produce(op.writes[0], e.map(maps::mul, {dy, factor}, "dx"));
}

}  // namespace
}  // namespace in_modulate_backward

constinit const Operator operators::modulate_backward{
    .name = "modulate_backward",
    .op_class = OpClass::pointwise,
    .locality = Locality::tile_local,
    .formula = "dx = dy · (1 + scale), one row of scales for every sequence",
    .reads = {kDy, {"scale", "B", "N"}},
    .write = kDx,
    .flops = per_output<2>,
    .sum_length = one_term,
    .reference = in_modulate_backward::compute,
    .lower = in_modulate_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::strided>};

}  // namespace fuseline
