// The gradient of attention's probabilities.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_d_probs {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> v = read(g, in, op.reads[1]);
  const View<double> dp = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = dy.cols / a.heads;
  map_visible(a, dp, [&](std::int64_t row, std::int64_t s) {
    const std::int64_t b = row / (a.heads * a.q_tokens);
    const std::int64_t h = row / a.q_tokens % a.heads;
    const std::int64_t token = b * a.q_tokens + row % a.q_tokens;
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c)
      sum += dy(token, h * d + c) * v(key_row(v, a, b, s), kv_head(a, h) * d + c);
    return sum;
  });
}

// dP = dY V^T
void mainloop(Emitter& e, const Op& op, bool) { heads_result(e, op, queries_with_keys(op), false); }

}  // namespace
}  // namespace in_attention_d_probs

constinit const Operator operators::attention_d_probs{
    .name = "attention_d_probs",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "dp = dy v^T for each head, visible pairs",
    .reads = {{"dy", "M", "Q"}, {"v", "R", "C"}},
    .write = OperandSpec{"dp", "P", "S"},
    .flops = attention_value_flops,
    .sum_length = head_value_columns,
    .reference = in_attention_d_probs::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = no_gradient(kOfAGradient),
    .framework = never_alone,
    .mainloop = in_attention_d_probs::mainloop,
    .attention = true,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
