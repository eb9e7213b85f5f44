#include "sim/memory/visible_keys.h"

#include <algorithm>

#include "base/units.h"

namespace fuseline {

KeyRange visible_keys(const AttentionShape& attention, std::int64_t first_query,
                      std::int64_t count) {
  const std::int64_t before = attention.kv_tokens - attention.q_tokens;  // position of query 0
  KeyRange range{0, attention.kv_tokens};
  if (attention.causal)
    range.end =
        std::max(before + first_query + count, std::min(attention.prefix, attention.kv_tokens));
  if (attention.window > 0) {
    const std::int64_t last = attention.causal ? before + first_query + 1 : attention.kv_tokens;
    range.begin = std::max<std::int64_t>(0, last - attention.window);
  }
  return range;
}

KeyRange query_tiles_that_see(const AttentionShape& attention, std::int64_t first_key,
                              std::int64_t count, std::int64_t tile) {
  const std::int64_t before = attention.kv_tokens - attention.q_tokens;  // position of query 0
  std::int64_t begin = 0;
  std::int64_t end = attention.q_tokens;
  if (attention.causal && first_key >= attention.prefix)
    begin = std::max<std::int64_t>(0, first_key - before);
  if (attention.window > 0 && attention.causal)
    end = std::min(end, first_key + count - 1 + attention.window - before);
  if (attention.window > 0 && !attention.causal &&
      first_key + count <= attention.kv_tokens - attention.window)
    end = begin;
  if (begin >= end) return {};
  return {begin / tile * tile, std::min(attention.q_tokens, ceil_div(end, tile) * tile)};
}

}  // namespace fuseline
