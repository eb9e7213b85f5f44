// delta of attention's gradient.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_backward_dot {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> y = read(g, in, op.reads[1]);
  const View<double> delta = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t token = b * a.q_tokens + t;
    double sum = 0;
    for (std::int64_t c = h * a.v_width(); c < (h + 1) * a.v_width(); ++c)
      sum += dy(token, c) * y(token, c);
    delta(row, 0) = sum;
  });
}

// Rows are those of the heads: rowsum(dY·Y) of each.
void lower(Emitter& e, const Op& op) {
  const Value dy = e.tile(op.reads[0]);
  const Value y = e.tile(op.reads[1]);
  const Value product = e.map(maps::mul, {dy, y}, "p");
  e.produce(op.writes[0], e.row_reduce(reductions::sum, product, "delta"), true);
}

// Rows are those of the heads.
RowMainloop rows(const Op& op) {
  const auto& a = op.attributes.as<AttentionShape>();
  return {a.batch * a.heads * a.q_tokens, a.v_width(), a.heads, a.q_tokens};
}

}  // namespace
}  // namespace in_attention_backward_dot

constinit const Operator operators::attention_backward_dot{
    .name = "attention_backward_dot",
    .op_class = OpClass::attention,
    .locality = Locality::full_row,
    .formula = "delta = sum of dy·y over each head",
    .reads = {{"dy", "M", "Q"}, {"y", "M", "Q"}},
    .write = OperandSpec{"delta", "P", "1"},
    .flops = per_input<2>,
    .sum_length = head_columns,
    .reference = in_attention_backward_dot::compute,
    .lower = in_attention_backward_dot::lower,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = always<Implementation::vectorized>,
    .rows = in_attention_backward_dot::rows,
    .around_attention = true,
    .alone = "works on heads, not tokens"};

}  // namespace fuseline
