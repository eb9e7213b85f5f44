// The mean of the values, weighted with the probabilities.
#include "model/operators/all_operators.h"
#include "model/operators/support/cache_scales.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_context {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> probs = read(g, in, op.reads[0]);
  const View<const double> v = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const auto scaled = cache_scale(op);
  const View<const double> scale = scaled ? read(g, in, *scaled) : View<const double>{};
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = y.cols / a.heads;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t kv_head = h / (a.heads / a.kv_heads);
    const Seen seen = visible(a, probs.cols, t);
    for (std::int64_t c = 0; c < d; ++c) {
      double sum = 0;
      for (std::int64_t s = seen.begin; s < seen.end; ++s)
        sum += probs(row, s) * v(key_row(v, a, b, s), kv_head * d + c) *
               (scaled ? scale(key_row(v, a, b, s), kv_head) : 1.0);
      y(b * a.q_tokens + t, h * d + c) = sum;
    }
  });
}

// Y = P V
void mainloop(Emitter& e, const Op& op, bool) {
  heads_result(e, op, scores_with_values(op), false);
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.saves_log_sum_exp()) {
    const Operand delta = a.make("delta", "[B·H·T, 1]", Dtype::fp32, op.reads[0].rows, 1);
    a.emit("d_dot", operators::attention_backward_dot, {a.dy(), a.forward_value(op.writes[0])},
           {delta}, op.attributes);
    a.leave_delta(op.reads[0].tensor, delta);
  }
  if (a.wants(1)) {
    const Operand probs = a.forward_value(op.reads[0]);
    a.emit("d_v", operators::attention_d_v, {probs, a.dy()}, {a.target(1)}, op.attributes);
  }
  if (a.wants(0)) {
    const Operand v = a.forward_value(op.reads[1]);
    a.emit("d_probs", operators::attention_d_probs, {a.dy(), v}, {a.target(0)}, op.attributes);
  }
}

}  // namespace
}  // namespace in_attention_context

constinit const Operator operators::attention_context{
    .name = "attention_context",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "y = p v for each head",
    .reads = {{"p", "P", "S"}, {"v", "R", "C"}, {"scale", "R", "G", true}},
    .write = OperandSpec{"y", "M", "Q"},
    .flops = attention_value_flops,
    .sum_length = input_columns,
    .reference = in_attention_context::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = in_attention_context::gradient,
    .framework = never_alone,
    .mainloop = in_attention_context::mainloop,
    .attention = true,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
