// Attention and the KV cache; rows and masks as in reference_heads.h.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/reference_heads.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

void attention_scores(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> q = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[1]);
  const View<double> scores = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t kv_head = h / (a.heads / a.kv_heads);
    const Columns seen = visible(a, scores.cols, t);
    for (std::int64_t s = 0; s < scores.cols; ++s) {
      double sum = 0;
      if (s >= seen.begin && s < seen.end)
        for (std::int64_t c = 0; c < d; ++c)
          sum += q(b * a.q_tokens + t, h * d + c) * k(key_row(k, a, b, s), kv_head * d + c);
      scores(row, s) = a.scalar * sum;
    }
  });
}

void softmax(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> scores = read(g, in, op.reads[0]);
  const View<double> probs = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Columns seen = visible(a, scores.cols, t);
    double largest = scores(row, seen.begin);
    for (std::int64_t s = seen.begin; s < seen.end; ++s)
      largest = std::max(largest, scores(row, s));
    double sum = 0;
    for (std::int64_t s = seen.begin; s < seen.end; ++s) sum += std::exp(scores(row, s) - largest);
    for (std::int64_t s = 0; s < scores.cols; ++s)
      probs(row, s) =
          s >= seen.begin && s < seen.end ? std::exp(scores(row, s) - largest) / sum : 0.0;
    if (op.writes.size() > 1) write(g, out, op.writes[1])(row, 0) = largest + std::log(sum);
  });
}

void attention_context(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> probs = read(g, in, op.reads[0]);
  const View<const double> v = read(g, in, op.reads[1]);
  const View<double> y = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t kv_head = h / (a.heads / a.kv_heads);
    const Columns seen = visible(a, probs.cols, t);
    for (std::int64_t c = 0; c < d; ++c) {
      double sum = 0;
      for (std::int64_t s = seen.begin; s < seen.end; ++s)
        sum += probs(row, s) * v(key_row(v, a, b, s), kv_head * d + c);
      y(b * a.q_tokens + t, h * d + c) = sum;
    }
  });
}

void cache_append(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> cache = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  FUSELINE_ASSERT(a.batch > 0 && a.q_tokens > 0, op.name);
  const std::int64_t tokens = cache.tensor_rows / a.batch;
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t t = 0; t < a.q_tokens; ++t)
      for (std::int64_t c = 0; c < x.cols; ++c)
        cache(b * tokens + tokens - a.q_tokens + t, c) = x(b * a.q_tokens + t, c);
}

}  // namespace fuseline::reference
