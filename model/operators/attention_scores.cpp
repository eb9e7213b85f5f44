// Scores of every query with the keys that it sees.
#include <cmath>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/cache_scales.h"
#include "model/operators/support/counts.h"
#include "model/operators/support/facts.h"
#include "model/operators/support/gradients.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/maps.h"

namespace fuseline {

namespace in_attention_scores {
namespace {

using namespace reference;

void compute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> q = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[1]);
  const View<double> scores = write(g, out, op.writes[0]);
  const auto added = score_bias(op);
  const bool biased = added.has_value();
  const View<const double> bias = biased ? read(g, in, *added) : View<const double>{};
  const auto scaled = cache_scale(op);
  const View<const double> scale = scaled ? read(g, in, *scaled) : View<const double>{};
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = q.cols / a.heads;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t kv_head = h / (a.heads / a.kv_heads);
    const Seen seen = visible(a, scores.cols, t);
    for (std::int64_t s = 0; s < scores.cols; ++s) {
      double sum = 0;
      if (s >= seen.begin && s < seen.end)
        for (std::int64_t c = 0; c < d; ++c)
          sum += q(b * a.q_tokens + t, h * d + c) * k(key_row(k, a, b, s), kv_head * d + c);
      if (scaled) sum *= scale(key_row(k, a, b, s), kv_head);
      sum *= a.scale;
      if (a.softcap > 0) sum = a.softcap * std::tanh(sum / a.softcap);
      if (biased && s >= seen.begin && s < seen.end) sum += bias(h * a.q_tokens + t, s);
      scores(row, s) = sum;
    }
  });
}

// S = cap(scale·Q K^T) + bias. c·tanh(s / c) = 2c·sigmoid(2s / c) - c.
void mainloop(Emitter& e, const Op& op, bool) {
  const auto& a = op.attributes.as<AttentionShape>();
  const GemmMainloop product = queries_with_keys(op);
  FUSELINE_ASSERT(!a.cache.quantised(), op.name + ": dequantise_cache comes first");
  const bool biased = score_bias(op).has_value();
  if (a.softcap <= 0 && !biased) return heads_result(e, op, product, true);
  e.set_mainloop(product, product.N);
  Value s = 0;
  if (a.softcap > 0) {
    s = e.map(maps::scale_by_constant, {s}, "s", 2 * a.scale / a.softcap);
    s = e.map(maps::sigmoid, {s}, "sigmoid");
    s = e.map(maps::scale_by_constant, {s}, "capped", 2 * a.softcap);
    s = e.map(maps::add_constant, {s}, "capped", -a.softcap);
  } else {
    s = e.map(maps::scale_by_constant, {s}, "s", a.scale);
  }
  if (biased) s = e.map(maps::add, {s, e.table(op.reads[2])}, "biased");
  e.produce(op.writes[0], s);
}

// Four operations cap a score, one adds the bias.
Flops count(const Graph& graph, const Op& op) {
  const std::int64_t more =
      (op.attributes.as<AttentionShape>().softcap > 0 ? 4 : 0) + (score_bias(op) ? 1 : 0);
  const auto& a = op.attributes.as<AttentionShape>();
  return attention_flops(graph, op) +
         checked_product<Flops>(visible_pairs(a), a.batch, a.heads, more);
}

void gradient(Adjoint& a) {
  const Op& op = a.op();
  const bool capped_scores = op.attributes.as<AttentionShape>().softcap > 0;
  const bool biased = score_bias(op).has_value();
  if (biased && (capped_scores || a.wants(2)))
    throw InputError({.field = op.name,
                      .message = capped_scores
                                     ? "the gradient of attention with scores that are "
                                       "capped and biased is not built yet"
                                     : "the gradient of a bias of scores is not built yet",
                      .allowed = "its forward pass, or a bias that is a table"});
  Operand ds = a.dy();
  if (capped_scores) {
    const Operand capped = a.forward_value(op.writes[0]);
    ds = a.make_like("d_uncapped", op.writes[0]);
    a.emit("d_uncapped", operators::attention_d_capped, {a.dy(), capped}, {ds}, op.attributes);
  }
  if (a.wants(0)) {
    const Operand k = a.forward_value(op.reads[1]);
    a.emit("d_q", operators::attention_d_q, {ds, k}, {a.target(0)}, op.attributes);
  }
  if (a.wants(1)) {
    const Operand q = a.forward_value(op.reads[0]);
    a.emit("d_k", operators::attention_d_k, {ds, q}, {a.target(1)}, op.attributes);
  }
}

}  // namespace
}  // namespace in_attention_scores

constinit const Operator operators::attention_scores{
    .name = "attention_scores",
    .op_class = OpClass::attention,
    .locality = Locality::contraction,
    .formula = "s = scale·q k^T (capped, + bias) for each head, visible pairs",
    .reads = {{"q", "M", "Q"},
              {"k", "R", "C"},
              {"bias", "H", "S", true},
              {"scale", "R", "G", true}},
    .write = OperandSpec{"s", "P", "S"},
    .flops = in_attention_scores::count,
    .sum_length = head_columns,
    .reference = in_attention_scores::compute,
    .lower = in_mainloop,
    .extent = widest,
    .gradient = in_attention_scores::gradient,
    .framework = never_alone,
    .mainloop = in_attention_scores::mainloop,
    .attention = true,
    .columns = ColumnOrder::lost};

}  // namespace fuseline
