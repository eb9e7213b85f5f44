#include "sim/executor/reference_attention.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "model/operators/all_operators.h"
#include "model/operators/support/cache_scales.h"
#include "model/operators/support/heads.h"
#include "model/operators/support/view.h"
#include "sim/executor/blas.h"
#include "sim/executor/reference_source.h"

namespace fuseline::executor {

namespace {

constexpr std::int64_t kQueries = 256;  // that are looked at together

using reference::View;

// The only reader of the kind among the tensor's readers.
const Op* reader(const Graph& graph, TensorId id, OpKind kind) {
  const Op* found = nullptr;
  for (const OpId op : graph.consumers(id)) {
    if (graph.op(op).kind != kind) continue;
    if (found != nullptr) return nullptr;
    found = &graph.op(op);
  }
  return found;
}

std::size_t readers(const Graph& graph, const Op& op) {
  return graph.consumers(op.writes[0].tensor).size();
}

// False when others read what lies between the steps.
bool complete(const Graph& graph, AttentionSteps& s) {
  const TensorId scores = s.scores->writes[0].tensor;
  s.softmax = reader(graph, scores, operators::softmax);
  if (s.softmax == nullptr || readers(graph, *s.scores) != 1 || s.softmax->writes.size() != 1)
    return false;
  const TensorId probs = s.softmax->writes[0].tensor;
  s.context = reader(graph, probs, operators::attention_context);
  if (s.context == nullptr || s.context->writes[0].at.run > 0) return false;
  if (readers(graph, *s.softmax) == 1) return true;
  const AttentionShape& a = s.scores->attributes.as<AttentionShape>();
  // The gradient below knows neither caps nor biases.
  if (a.softcap > 0 || score_bias(*s.scores)) return false;
  s.d_v = reader(graph, probs, operators::attention_d_v);
  s.d_softmax = reader(graph, probs, operators::softmax_backward);
  if (s.d_v == nullptr || s.d_softmax == nullptr || readers(graph, *s.softmax) != 3) return false;
  const std::vector<OpId> d_probs = graph.producers(s.d_softmax->reads[1].tensor);
  const TensorId d_scores = s.d_softmax->writes[0].tensor;
  s.d_q = reader(graph, d_scores, operators::attention_d_q);
  s.d_k = reader(graph, d_scores, operators::attention_d_k);
  if (d_probs.size() != 1 || s.d_q == nullptr || s.d_k == nullptr) return false;
  for (const Op* step : {s.d_v, s.d_q, s.d_k})
    if (step->writes[0].at.run > 0) return false;
  s.d_probs = &graph.op(d_probs[0]);
  return s.d_probs->kind == operators::attention_d_probs && readers(graph, *s.d_probs) == 1 &&
         readers(graph, *s.d_softmax) == 2;
}

// Rows of K and V of one sequence and key head.
struct Keys {
  Keys(const Graph& graph, const AttentionSteps& steps, const Inputs& inputs,
       const TensorValues& values)
      : shape(steps.scores->attributes.as<AttentionShape>()),
        k(graph, values, inputs, steps.scores->reads[1]),
        v(graph, values, inputs, steps.context->reads[1]),
        span(steps.scores->reads[1].rows / shape.batch) {
    if (const auto added = score_bias(*steps.scores)) bias.emplace(graph, values, inputs, *added);
    if (const auto of_k = cache_scale(*steps.scores)) k_scale.emplace(graph, values, inputs, *of_k);
    if (const auto of_v = cache_scale(*steps.context))
      v_scale.emplace(graph, values, inputs, *of_v);
  }

  void load(std::int64_t sequence, std::int64_t head, std::vector<double>& keys,
            std::vector<double>& rows) const {
    const std::int64_t first = sequence * span;
    k.copy(first, span, head * shape.head_width, shape.head_width, keys);
    v.copy(first, span, head * shape.v_width(), shape.v_width(), rows);
    if (k_scale) dequantise(*k_scale, first, head, keys);
    if (v_scale) dequantise(*v_scale, first, head, rows);
  }

  // Codes of the head of keys [first, first + span) become what they are worth.
  void dequantise(const Source& scale, std::int64_t first, std::int64_t head,
                  std::vector<double>& codes) const {
    std::vector<double> scales;
    scale.copy(first, span, head, 1, scales);
    const std::size_t width = codes.size() / scales.size();
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] *= scales[i / width];
  }

  const AttentionShape& shape;
  Source k, v;
  std::optional<Source> k_scale, v_scale;  // [B·S, Hkv] of a cache in few bits
  std::optional<Source> bias;              // [heads · queries, keys], added to the scores
  std::int64_t span;                       // rows that are taken of a sequence
};

// Of one product over all heads.
double operations(const AttentionShape& a) {
  return 2.0 * static_cast<double>(a.batch * a.heads * a.q_tokens) *
         static_cast<double>(a.kv_tokens * a.head_width);
}

// Scores of the products q·k in place: cap(scale·q·k) + bias, where a key is seen.
void to_scores(double* s, reference::Seen seen, const AttentionShape& a, const double* bias) {
  for (std::int64_t i = seen.begin; i < seen.end; ++i) {
    s[i] *= a.scale;
    if (a.softcap > 0) s[i] = a.softcap * std::tanh(s[i] / a.softcap);
    if (bias != nullptr) s[i] += bias[i];
  }
}

void softmax(double* s, std::int64_t count, reference::Seen seen) {
  const double largest = *std::max_element(s + seen.begin, s + seen.end);
  double sum = 0;
  for (std::int64_t i = seen.begin; i < seen.end; ++i) sum += s[i] = std::exp(s[i] - largest);
  for (std::int64_t i = 0; i < count; ++i)
    s[i] = i >= seen.begin && i < seen.end ? s[i] / sum : 0.0;
}

// Probabilities [count, span] of queries [first, first + count) of a head, from these and the keys.
void probabilities(const Keys& from, std::int64_t head, std::int64_t first, std::int64_t count,
                   const std::vector<double>& queries, const std::vector<double>& keys,
                   std::vector<double>& probs) {
  const std::int64_t d = from.shape.head_width;
  probs.resize(static_cast<std::size_t>(count * from.span));
  multiply({queries.data(), d, false}, {keys.data(), d, false}, count, from.span, d, 0.0,
           probs.data(), from.span);
  std::vector<double> bias;
  if (from.bias) from.bias->copy(head * from.shape.q_tokens + first, count, 0, from.span, bias);
  for (std::int64_t t = 0; t < count; ++t) {
    double* row = probs.data() + t * from.span;
    const reference::Seen seen = reference::visible(from.shape, from.span, first + t);
    to_scores(row, seen, from.shape, from.bias ? bias.data() + t * from.span : nullptr);
    softmax(row, from.span, seen);
  }
}

// dS = scale·P·(dP - rowsum(P·dP)) in place of dP.
void scores_gradient(const std::vector<double>& probs, std::int64_t count, std::int64_t span,
                     double scale, std::vector<double>& dp) {
  for (std::int64_t t = 0; t < count; ++t) {
    const double* p = probs.data() + t * span;
    double* d = dp.data() + t * span;
    double delta = 0;
    for (std::int64_t s = 0; s < span; ++s) delta += p[s] * d[s];
    for (std::int64_t s = 0; s < span; ++s) d[s] = scale * p[s] * (d[s] - delta);
  }
}

}  // namespace

bool AttentionSteps::holds(const Op& op) const {
  return &op == scores || &op == softmax || &op == context || &op == d_probs || &op == d_softmax ||
         &op == d_v || &op == d_q || &op == d_k;
}

std::vector<AttentionSteps> streamed_attentions(const Graph& graph) {
  std::vector<AttentionSteps> found;
  for (const Op& op : graph.ops()) {
    AttentionSteps steps;
    steps.scores = &op;
    if (op.kind == operators::attention_scores && complete(graph, steps)) found.push_back(steps);
  }
  return found;
}

void attend(const Graph& graph, const AttentionSteps& steps, const Inputs& inputs,
            TensorValues& values, const Workers& workers) {
  const Keys from(graph, steps, inputs, values);
  const AttentionShape& a = from.shape;
  const Source q(graph, values, inputs, steps.scores->reads[0]);
  values.writable(steps.context->writes[0].tensor);
  const View<double> y = reference::write(graph, values, steps.context->writes[0]);
  const std::int64_t d = a.head_width;
  const std::int64_t dv = a.v_width();
  parallel_for(workers, Loop{a.batch * a.heads, operations(a)}, [&](std::int64_t index, int) {
    const std::int64_t b = index / a.heads;
    const std::int64_t h = index % a.heads;
    std::vector<double> queries, keys, rows, probs;
    from.load(b, h / (a.heads / a.kv_heads), keys, rows);
    for (std::int64_t first = 0; first < a.q_tokens; first += kQueries) {
      const std::int64_t count = std::min(kQueries, a.q_tokens - first);
      q.copy(b * a.q_tokens + first, count, h * d, d, queries);
      probabilities(from, h, first, count, queries, keys, probs);
      multiply({probs.data(), from.span, false}, {rows.data(), dv, true}, count, dv, from.span, 0.0,
               y.data + (b * a.q_tokens + first) * y.stride + h * dv, y.stride);
    }
  });
}

// One key head at a time, so that the sums over the queries of its heads have one order.
void attend_backward(const Graph& graph, const AttentionSteps& steps, const Inputs& inputs,
                     TensorValues& values, const Workers& workers) {
  const Keys from(graph, steps, inputs, values);
  const AttentionShape& a = from.shape;
  const Source q(graph, values, inputs, steps.scores->reads[0]);
  const Source dy(graph, values, inputs, steps.d_v->reads[1]);
  for (const Op* op : {steps.d_q, steps.d_k, steps.d_v}) values.writable(op->writes[0].tensor);
  const View<double> dq = reference::write(graph, values, steps.d_q->writes[0]);
  const View<double> dk = reference::write(graph, values, steps.d_k->writes[0]);
  const View<double> dv = reference::write(graph, values, steps.d_v->writes[0]);
  const std::int64_t d = a.head_width;
  const std::int64_t width = a.v_width();
  const std::int64_t share = a.heads / a.kv_heads;
  const std::int64_t span = from.span;
  parallel_for(workers, Loop{a.batch * a.kv_heads, operations(a)}, [&](std::int64_t index, int) {
    const std::int64_t b = index / a.kv_heads;
    const std::int64_t kv_head = index % a.kv_heads;
    std::vector<double> queries, gradients, keys, rows, probs, dp;
    from.load(b, kv_head, keys, rows);
    double* dk_head = dk.data + b * span * dk.stride + kv_head * d;
    double* dv_head = dv.data + b * span * dv.stride + kv_head * width;
    double keep = 0;  // the first product replaces what lies there
    for (std::int64_t h = kv_head * share; h < (kv_head + 1) * share; ++h) {
      for (std::int64_t first = 0; first < a.q_tokens; first += kQueries) {
        const std::int64_t count = std::min(kQueries, a.q_tokens - first);
        const std::int64_t row = b * a.q_tokens + first;
        q.copy(row, count, h * d, d, queries);
        dy.copy(row, count, h * width, width, gradients);
        probabilities(from, h, first, count, queries, keys, probs);
        multiply({probs.data(), span, true}, {gradients.data(), width, true}, span, width, count,
                 keep, dv_head, dv.stride);
        dp.resize(probs.size());
        multiply({gradients.data(), width, false}, {rows.data(), width, false}, count, span, width,
                 0.0, dp.data(), span);
        scores_gradient(probs, count, span, a.scale, dp);
        multiply({dp.data(), span, false}, {keys.data(), d, true}, count, d, span, 0.0,
                 dq.data + row * dq.stride + h * d, dq.stride);
        multiply({dp.data(), span, true}, {queries.data(), d, true}, span, d, count, keep, dk_head,
                 dk.stride);
        keep = 1;
      }
    }
  });
}

std::int64_t doubles_per_thread(const AttentionShape& a) {
  const std::int64_t queries = std::min(kQueries, a.q_tokens);
  const std::int64_t width = std::max(a.head_width, a.v_width());
  return 2 * (queries * a.kv_tokens + (queries + a.kv_tokens) * width);
}

}  // namespace fuseline::executor
