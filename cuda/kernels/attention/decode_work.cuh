// How decode.cuh shares its work out: tiles of queries, and splits of the keys.
#pragma once

#include "shape.cuh"

namespace fuseline::gpu {

constexpr int decode_rows = 16;
// `rows` of a tile: more where heads are wide (decode_wide.cuh).
FUSELINE_HD int decode_row_tiles(const AttentionShape& s, int rows = decode_rows) {
  return ceil_div(s.q_tokens * s.shared_by(), rows);
}
FUSELINE_HD int decode_tiles(const AttentionShape& s, int rows = decode_rows) {
  return s.batch * s.kv_heads * decode_row_tiles(s, rows);
}
constexpr int most_splits = 80;
// Splits so that the thread blocks (`slots` run at once) finish together: the fewest rounds times
// keys per block, and among those the fewest splits. A split has at least 128 keys.
FUSELINE_HD int decode_splits(const AttentionShape& s, int slots, int rows = decode_rows) {
  const int tiles = decode_tiles(s, rows);
  const int most = max_of(1, min_of(most_splits, s.kv_tokens / 128));
  int best = 1;
  long long best_cost = 1LL << 62;
  for (int splits = 1; splits <= most; ++splits) {
    // A block costs its keys, and as much as 64 more to begin and to be joined.
    const long long rounds = (static_cast<long long>(tiles) * splits + slots - 1) / slots;
    const long long cost = rounds * (ceil_div(s.kv_tokens, splits) + 64);
    if (cost < best_cost) {
      best_cost = cost;
      best = splits;
    }
  }
  return best;
}
FUSELINE_HD long long decode_partial_floats(const AttentionShape& s, int splits, int value_width,
                                            int rows = decode_rows) {
  return static_cast<long long>(decode_tiles(s, rows)) * splits * rows * (value_width + 4);
}

}  // namespace fuseline::gpu
