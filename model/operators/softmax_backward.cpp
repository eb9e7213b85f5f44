// The gradient of the scores.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_softmax_backward {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> dp = read(g, in, op.reads[1]);
  const View<double> ds = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Seen seen = visible(a, p.cols, t);
    double delta = 0;
    for (std::int64_t s = seen.begin; s < seen.end; ++s) delta += p(row, s) * dp(row, s);
    for (std::int64_t s = 0; s < p.cols; ++s)
      ds(row, s) = s >= seen.begin && s < seen.end ? p(row, s) * (dp(row, s) - delta) : 0.0;
  });
}

void lower(Emitter& e, const Op& op) {
  const Value p = e.tile(op.reads[0]);
  const Value dp = e.tile(op.reads[1]);
  const Value product = e.map(maps::mul, {p, dp}, "pdp");
  const Value delta = e.row_reduce(reductions::sum, product, "delta");
  const Value rest = e.map(maps::sub, {dp, delta}, "d");
  e.produce(op.writes[0], e.map(maps::mul, {p, rest}, "ds"));
}

}  // namespace
}  // namespace in_softmax_backward

constinit const Operator operators::softmax_backward{
    .name = "softmax_backward",
    .op_class = OpClass::attention,
    .locality = Locality::full_row,
    .formula = "ds = p·(dp - sum of p·dp over the row)",
    .reads = {{"p", "P", "S"}, {"dp", "P", "S"}},
    .write = OperandSpec{"ds", "P", "S"},
    .flops = per_visible_pair<4>,
    .sum_length = input_columns,
    .reference = in_softmax_backward::compute,
    .lower = in_softmax_backward::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::row_norm>,
    .attention = true};

}  // namespace fuseline
