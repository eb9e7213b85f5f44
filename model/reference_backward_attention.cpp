// Gradients of attention's steps; rows and masks as in reference_heads.h.
#include <cmath>

#include "base/error.h"
#include "model/reference_heads.h"
#include "model/reference_ops.h"
#include "model/reference_view.h"

namespace fuseline::reference {

namespace {

std::int64_t kv_head(const OpAttributes& a, std::int64_t h) { return h / (a.heads / a.kv_heads); }

void clear(const View<double>& view) {
  for (std::int64_t r = 0; r < view.rows; ++r)
    for (std::int64_t c = 0; c < view.cols; ++c) view(r, c) = 0;
}

// Sets every entry of a [B·H·T, S] result: f(row, s) where query t sees key s, 0 elsewhere.
template <class F>
void map_visible(const OpAttributes& a, const View<double>& result, F f) {
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Columns seen = visible(a, result.cols, t);
    for (std::int64_t s = 0; s < result.cols; ++s)
      result(row, s) = s >= seen.begin && s < seen.end ? f(row, s) : 0.0;
  });
}

// result[key of (b, s), head's column c] += factor · weights(row, s) · queries(query, c) over all
// queries that see the key.
void sum_over_queries(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out,
                      double factor) {
  const View<const double> weights = read(g, in, op.reads[0]);
  const View<const double> queries = read(g, in, op.reads[1]);
  const View<double> result = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
  const std::int64_t span = result.rows / a.batch;
  clear(result);
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const Columns seen = visible(a, weights.cols, t);
    for (std::int64_t s = seen.begin; s < seen.end; ++s)
      for (std::int64_t c = 0; c < d; ++c)
        result(b * span + s, kv_head(a, h) * d + c) +=
            factor * weights(row, s) * queries(b * a.q_tokens + t, h * d + c);
  });
}

}  // namespace

void attention_backward_dot(const Graph& g, const Op& op, const TensorValues& in,
                            TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> y = read(g, in, op.reads[1]);
  const View<double> delta = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const std::int64_t token = b * a.q_tokens + t;
    double sum = 0;
    for (std::int64_t c = h * a.head_width; c < (h + 1) * a.head_width; ++c)
      sum += dy(token, c) * y(token, c);
    delta(row, 0) = sum;
  });
}

void attention_d_probs(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> dy = read(g, in, op.reads[0]);
  const View<const double> v = read(g, in, op.reads[1]);
  const View<double> dp = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
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

void softmax_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> dp = read(g, in, op.reads[1]);
  const View<double> ds = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Columns seen = visible(a, p.cols, t);
    double delta = 0;
    for (std::int64_t s = seen.begin; s < seen.end; ++s) delta += p(row, s) * dp(row, s);
    for (std::int64_t s = 0; s < p.cols; ++s)
      ds(row, s) = s >= seen.begin && s < seen.end ? p(row, s) * (dp(row, s) - delta) : 0.0;
  });
}

void softmax_backward_delta(const Graph& g, const Op& op, const TensorValues& in,
                            TensorValues& out) {
  const View<const double> p = read(g, in, op.reads[0]);
  const View<const double> dp = read(g, in, op.reads[1]);
  const View<const double> delta = read(g, in, op.reads[2]);
  map_visible(op.attributes, write(g, out, op.writes[0]), [&](std::int64_t row, std::int64_t s) {
    return p(row, s) * (dp(row, s) - delta(row, 0));
  });
}

void softmax_recompute(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> scores = read(g, in, op.reads[0]);
  const View<const double> log_sum_exp = read(g, in, op.reads[1]);
  map_visible(op.attributes, write(g, out, op.writes[0]), [&](std::int64_t row, std::int64_t s) {
    return std::exp(scores(row, s) - log_sum_exp(row, 0));
  });
}

void attention_d_q(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> ds = read(g, in, op.reads[0]);
  const View<const double> k = read(g, in, op.reads[1]);
  const View<double> dq = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const Columns seen = visible(a, ds.cols, t);
    for (std::int64_t c = 0; c < d; ++c) {
      double sum = 0;
      for (std::int64_t s = seen.begin; s < seen.end; ++s)
        sum += ds(row, s) * k(key_row(k, a, b, s), kv_head(a, h) * d + c);
      dq(b * a.q_tokens + t, h * d + c) = a.scalar * sum;
    }
  });
}

void attention_d_k(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  sum_over_queries(g, op, in, out, op.attributes.scalar);
}

void attention_d_v(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  sum_over_queries(g, op, in, out, 1.0);
}

void head_sum(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out) {
  const View<const double> x = read(g, in, op.reads[0]);
  const View<double> y = write(g, out, op.writes[0]);
  const OpAttributes& a = op.attributes;
  const std::int64_t d = a.head_width;
  FUSELINE_ASSERT(x.cols == a.heads * d && y.cols == a.kv_heads * d, op.name);
  clear(y);
  for (std::int64_t m = 0; m < x.rows; ++m)
    for (std::int64_t n = 0; n < x.cols; ++n) y(m, kv_head(a, n / d) * d + n % d) += x(m, n);
}

}  // namespace fuseline::reference
