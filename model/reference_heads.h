// Heads, masks and key rows; shared by the reference functions of attention and of its gradients.
//
// Rows of q are b·T + t; rows of a key or value tensor are b·S + s, of
// which an operand with fewer rows than its tensor takes the last of each sequence; rows of scores
// are (b·H + h)·T + t, and their column 0 is the first key taken.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "model/graph.h"
#include "model/reference_view.h"

namespace fuseline::reference {

struct Columns {
  std::int64_t begin, end;
};

// The columns that query t sees of `span` key tokens, the last of which is the last query's
// position.
inline Columns visible(const OpAttributes& a, std::int64_t span, std::int64_t t) {
  const std::int64_t end = a.causal ? span - a.q_tokens + t + 1 : span;
  return {a.window > 0 ? std::max<std::int64_t>(0, end - a.window) : 0, end};
}

// Row of the key or value tensor that holds score column s of sequence b.
inline std::int64_t key_row(const View<const double>& keys, const OpAttributes& a, std::int64_t b,
                            std::int64_t s) {
  const std::int64_t tokens = keys.tensor_rows / a.batch;
  return b * tokens + tokens - keys.rows / a.batch + s;
}

// Calls f(b, h, t, score row) for each query of each head.
template <class F>
void for_each_query(const OpAttributes& a, F f) {
  FUSELINE_ASSERT(a.batch > 0 && a.heads > 0 && a.kv_heads > 0 && a.q_tokens > 0,
                  "attention without its attributes");
  for (std::int64_t b = 0; b < a.batch; ++b)
    for (std::int64_t h = 0; h < a.heads; ++h)
      for (std::int64_t t = 0; t < a.q_tokens; ++t) f(b, h, t, (b * a.heads + h) * a.q_tokens + t);
}

}  // namespace fuseline::reference
