// Probabilities again from the scores and their log-sum-exp.
#include <cmath>

#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softmax_recompute {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> scores = read(g, in, op.reads[0]);
  const View<const double> log_sum_exp = read(g, in, op.reads[1]);
  map_visible(op.attributes.as<AttentionShape>(), write(g, out, op.writes[0]),
              [&](std::int64_t row, std::int64_t s) {
                return std::exp(scores(row, s) - log_sum_exp(row, 0));
              });
}

void lower(Emitter& e, const Op& op) {
  Value x = e.tile(op.reads[0]);
  if (op.attributes.as<AttentionShape>().causal || op.attributes.as<AttentionShape>().window > 0) {
    const Value masked = e.fresh("x");
    e.emit(Mask{masked, x, op.attributes.as<AttentionShape>()});
    x = masked;
  }
  const Value lse = e.per_row(op.reads[1], "lse");
  const Value shifted = e.map(maps::sub, {x, lse}, "x");
  e.produce(op.writes[0], e.map(maps::exp, {shifted}, "p"));
}

}  // namespace
}  // namespace in_softmax_recompute

constinit const Operator operators::softmax_recompute{
    .name = "softmax_recompute",
    .op_class = OpClass::attention,
    .locality = Locality::tile_local,
    .formula = "p = exp(s - lse), visible columns, lse one value a row",
    .reads = {{"s", "P", "S"}, {"lse", "P", "1"}},
    .write = OperandSpec{"p", "P", "S"},
    .flops = per_visible_pair<2>,
    .sum_length = one_term,
    .reference = in_softmax_recompute::compute,
    .lower = in_softmax_recompute::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = by_layout,
    .attention = true};

}  // namespace fuseline
