// Scores of every query with the keys that it sees.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> q = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[1]);
  const View<double> scores = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = a.head_width;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t kv_head = h / (a.heads / a.kv_heads);
    const Seen seen = visible(a, scores.cols, t);
    for (std::int64_t s = 0; s < scores.cols; ++s) {
      double sum = 0;
      if (s >= seen.begin && s < seen.end)
        for (std::int64_t c = 0; c < d; ++c)
          sum += q(b * a.q_tokens + t, h * d + c) * k(key_row(k, a, b, s), kv_head * d + c);
      scores(row, s) = a.scale * sum;
    }
  });
}

// S = scale·Q K^T
void mainloop(Emitter& e, const Op& op, bool) { heads_result(e, op, queries_with_keys(op), true); }

void gradient(Adjoint& a) {
  const Op& op = a.op();
  if (a.wants(0)) {
    const Operand k = a.forward_value(op.reads[1]);
    a.emit("d_q", operators::attention_d_q, {a.dy(), k}, {a.target(0)}, op.attributes);
  }
  if (a.wants(1)) {
    const Operand q = a.forward_value(op.reads[0]);
    a.emit("d_k", operators::attention_d_k, {a.dy(), q}, {a.target(1)}, op.attributes);
  }
}

}  // namespace

constinit const Operator operators::attention_scores{
    .name = "attention_scores",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "s = scale·q k^T for each head, visible pairs",
    .reads = {{"q", "M", "Q"}, {"k", "R", "C"}},
    .write = OperandSpec{"s", "P", "S"},
    .flops = attention_flops,
    .sum_length = head_columns,
    .reference = compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = gradient,
    .framework = never_alone,
    .mainloop = mainloop,
    .attention = true,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
