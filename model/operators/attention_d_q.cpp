// The gradient of the queries.
#include "model/operators/all_operators.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_d_q {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> ds = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[1]);
  const View<double> dq = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = dq.cols / a.heads;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const Seen seen = visible(a, ds.cols, t);
    for (std::int64_t c = 0; c < d; ++c) {
      double sum = 0;
      for (std::int64_t s = seen.begin; s < seen.end; ++s)
        sum += ds(row, s) * k(key_row(k, a, b, s), kv_head(a, h) * d + c);
      dq(b * a.q_tokens + t, h * d + c) = a.scale * sum;
    }
  });
}

// dQ = scale·dS K
void mainloop(Emitter& e, const Op& op, bool) { heads_result(e, op, scores_with_values(op), true); }

}  // namespace
}  // namespace in_attention_d_q

constinit const Operator operators::attention_d_q{.name = "attention_d_q",
                                                  .op_class = OpClass::attention,
                                                  .locality = Locality::contraction,
                                                  .formula = "dq = scale·ds k for each head",
                                                  .reads = {{"ds", "P", "S"}, {"k", "R", "C"}},
                                                  .write = OperandSpec{"dq", "M", "Q"},
                                                  .flops = attention_flops,
                                                  .sum_length = input_columns,
                                                  .reference = in_attention_d_q::compute,
                                                  .lower = in_mainloop,
                                                  .extent = widest,
                                                  .gradient = no_gradient(kOfAGradient),
                                                  .framework = never_alone,
                                                  .mainloop = in_attention_d_q::mainloop,
                                                  .attention = true,
                                                  .columns = ColumnOrder::heads_of_second};

}  // namespace fuseline
