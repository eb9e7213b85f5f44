// The gradient of the scores, from row sums known before.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softmax_backward_delta {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> dp = read(g, in, op.reads[1]);
  const View<const double> delta = read(g, in, op.reads[2]);
  map_visible(
      op.attributes.as<AttentionShape>(), write(g, out, op.writes[0]),
      [&](std::int64_t row, std::int64_t s) { return p(row, s) * (dp(row, s) - delta(row, 0)); });
}

void lower(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value dp = e.tile(op.reads[1]);
  const Value delta = e.per_row(op.reads[2], "delta");
  const Value rest = e.map(maps::sub, {dp, delta}, "d");
  e.produce(op.writes[0], e.map(maps::mul, {p, rest}, "ds"));
}

}  // namespace
}  // namespace in_softmax_backward_delta

constinit const Operator operators::softmax_backward_delta{
    .name = "softmax_backward_delta",
    .op_class = OpClass::attention,
    .locality = Locality::tile_local,
    .formula = "ds = p·(dp - delta), delta one value a row",
    .reads = {{"p", "P", "S"}, {"dp", "P", "S"}, {"delta", "P", "1"}},
    .write = OperandSpec{"ds", "P", "S"},
    .flops = per_visible_pair<2>,
    .sum_length = one_term,
    .reference = in_softmax_backward_delta::compute,
    .lower = in_softmax_backward_delta::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .attention = true};

}  // namespace fuseline
