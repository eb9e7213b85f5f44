// Heads, masks and key rows; shared by the reference functions of attention and of its gradients.
//
// Rows of q are b·T + t; rows of a key or value operand are b·span + s, where span may be less than
// S: the last keys of each sequence; rows of scores are (b·H + h)·T + t, and their column 0 is the
// first key taken.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "model/graph.h"
#include "model/operators/attributes.h"
#include "model/operators/support/view.h"

namespace fuseline::reference {

struct Seen {
  std::int64_t begin, end;
};

// The columns that query t sees of `span` key tokens, the last of which is the last query's
// position.
inline Seen visible(const AttentionShape& a, std::int64_t span, std::int64_t t) {
  const std::int64_t own = span - a.q_tokens + t + 1;
  const std::int64_t prefix = std::min(a.prefix, a.kv_tokens) - (a.kv_tokens - span);
  const std::int64_t end = a.causal ? std::max(own, prefix) : span;
  const std::int64_t window_ends = a.causal ? own : span;
  return {a.window > 0 ? std::max<std::int64_t>(0, window_ends - a.window) : 0, end};
}

// Row of the key or value operand that holds score column s of sequence b.
inline std::int64_t key_row(const View<const double>& keys, const AttentionShape& a, std::int64_t b,
                            std::int64_t s) {
  return b * (keys.rows / a.batch) + s;
}

// Calls f(b, h, t, score row) for each query of each head.
template <class F>
void for_each_query(const AttentionShape& a, F f) {
  FUSELINE_ASSERT(a.batch > 0 && a.heads > 0 && a.kv_heads > 0 && a.q_tokens > 0,
                  "attention without its attributes");
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h)
      for (std::int64_t t = 0; t < a.q_tokens; ++t) f(b, h, t, (b * a.heads + h) * a.q_tokens + t);
}

inline std::int64_t kv_head(const AttentionShape& a, std::int64_t h) {
  return h / (a.heads / a.kv_heads);
}

inline void clear(const View<double>& view) {
  for (std::int64_t r = 0; r < view.rows; ++r)
    for (std::int64_t c = 0; c < view.cols; ++c) view(r, c) = 0;
}

// Sets every entry of a [B·H·T, S] result: f(row, s) where query t sees key s, 0 elsewhere.
template <class F>
void map_visible(const AttentionShape& a, const View<double>& result, F f) {
  for_each_query(a, [&](std::int64_t, std::int64_t, std::int64_t t, std::int64_t row) {
    const Seen seen = visible(a, result.cols, t);
    for (std::int64_t s = 0; s < result.cols; ++s)
      result(row, s) = s >= seen.begin && s < seen.end ? f(row, s) : 0.0;
  });
}

// result[key of (b, s), head's column c] += factor · weights(row, s) · queries(query, c) over all
// queries that see the key.
inline void sum_over_queries(const Graph& g, const Op& op, const TensorValues& in,
                             TensorValues& out, double factor) {
  const View<const double> weights = read(g, in, op.reads[0]);
  const View<const double> queries = read(g, in, op.reads[1]);
  const View<double> result = write(g, out, op.writes[0]);
  const auto& a = op.attributes.as<AttentionShape>();
  const std::int64_t d = queries.cols / a.heads;
  const std::int64_t span = result.rows / a.batch;
  clear(result);
  for_each_query(a, [&](std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t row) {
    const Seen seen = visible(a, weights.cols, t);
    for (std::int64_t s = seen.begin; s < seen.end; ++s)
      for (std::int64_t c = 0; c < d; ++c)
        result(b * span + s, kv_head(a, h) * d + c) +=
            factor * weights(row, s) * queries(b * a.q_tokens + t, h * d + c);
  });
}

}  // namespace fuseline::reference
