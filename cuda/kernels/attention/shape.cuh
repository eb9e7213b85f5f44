// What attention computes: sizes, the keys that a query sees, and the order of the work.
//
// Query t (0 to T - 1) of a sequence with S keys stands at position S - T + t: the last query sees
// the last key. Operands as the IR has them, 16-bit, row-major, heads side by side:
//   q  [B·T, H·d]      row b·T + t, columns h·d onward; rows may lie further apart (a slice of the
//                      fused QKV result)
//   k, v  [B·S, Hkv·d] row b·kv_rows + s: a slice, or a cache whose sequences have room to grow
//   y  [B·T, H·d], log-sum-exp [B·H·T] fp32, row (b·H + h)·T + t: ln of the sum of exp(scale·q k)
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu {

struct AttentionShape {
  int batch, heads, kv_heads;  // B, H, Hkv; H is a multiple of Hkv
  int q_tokens, kv_tokens;     // T, S
  int kv_rows;                 // rows of k and v from one sequence to the next, at least S
  int causal;
  int window;  // a query sees at most so many keys; 0: all
  float scale;
  float softcap = 0.0F;  // c > 0: scores s become c tanh(s / c), in kernels made for that

  FUSELINE_HD int shared_by() const { return heads / kv_heads; }  // query heads of one key head
  // Keys [first_key, end_key) that query t sees; none if end_key <= 0.
  FUSELINE_HD int end_key(int t) const {
    return causal ? min_of(kv_tokens, kv_tokens - q_tokens + t + 1) : kv_tokens;
  }
  FUSELINE_HD int first_key(int t) const { return window > 0 ? max_of(0, end_key(t) - window) : 0; }
  // Queries [first_query, end_query) that see any of keys [begin, end).
  FUSELINE_HD int first_query(int begin) const {
    return causal ? max_of(0, begin - (kv_tokens - q_tokens)) : 0;
  }
  FUSELINE_HD int end_query(int end) const {
    if (window == 0) return q_tokens;
    if (!causal) return end > kv_tokens - window ? q_tokens : 0;
    return min_of(q_tokens, end - 1 + window - (kv_tokens - q_tokens));
  }
};

// Keys that a block of Hopper's forward kernel has. Wide heads leave less shared memory for the ring
// and fewer registers for scores.
FUSELINE_HD constexpr int hopper_block_keys(int key_width, int value_width) {
  return key_width > 192 || value_width > 128 ? 80 : 128;
}

// Key blocks [first, end) that a tile of queries needs.
struct BlockRange {
  int first, end;
  FUSELINE_HD int count() const { return max_of(0, end - first); }
};
FUSELINE_HD BlockRange key_blocks(const AttentionShape& shape, int first_row, int rows,
                                  int block_keys) {
  const int last_row = min_of(first_row + rows, shape.q_tokens) - 1;
  const int end = max_of(0, shape.end_key(last_row));
  return {shape.first_key(first_row) / block_keys, ceil_div(end, block_keys)};
}
// Whether a block holds keys that one of these queries does not see.
FUSELINE_HD bool needs_mask(const AttentionShape& shape, int first_row, int rows, int first_key,
                            int block_keys) {
  return first_key + block_keys > shape.end_key(first_row) ||
         first_key < shape.first_key(first_row + rows - 1);
}

// The order of (sequence and head, tile of queries). Heads are taken in groups whose keys and
// values stay in L2 together; in a group the last tiles come first, since under a causal mask they
// see most keys and a long tile must not start last. Thread blocks draw items in this order
// (tickets.cuh), or are items, so whoever is free takes the next.
struct AttentionItem {
  int batch, head, tile;
};
struct AttentionOrder {
  int heads, tiles, together;  // together: heads (of all sequences) in a group

  FUSELINE_HD AttentionItem item(int index, const AttentionShape& shape) const {
    const int per_group = together * tiles;
    const int group = index / per_group;
    const int rest = index - group * per_group;
    const int width = min_of(together, heads - group * together);
    const int tile = rest / width;
    const int head = group * together + rest - tile * width;
    return {head / shape.heads, head % shape.heads, tiles - 1 - tile};
  }
  FUSELINE_HD int items() const { return heads * tiles; }
};
// `at_once`: thread blocks that run at once. Tiles of 1, 2, ... n units of work can be dealt out
// evenly once there is more work in a group than at_once · n: heads > 2 at_once / (n + 1). That
// comes before L2: with groups that are too small the blocks idle at the end.
FUSELINE_HD AttentionOrder attention_order(const AttentionShape& shape, int tile_rows,
                                           int head_width, int at_once = 132) {
  constexpr long long l2_share = 8LL << 20;
  const int heads = shape.batch * shape.heads;
  const int tiles = ceil_div(shape.q_tokens, tile_rows);
  const long long bytes = 4LL * shape.kv_tokens * head_width;  // one head's keys and values
  const long long fit = l2_share / (bytes > 0 ? bytes : 1) * shape.shared_by();
  const int even = shape.causal && shape.window == 0 ? ceil_div(2 * at_once, tiles + 1) : 1;
  const int together = max_of(even, fit < heads ? static_cast<int>(fit) : heads);
  return {heads, tiles, min_of(together, heads)};
}

}  // namespace fuseline::gpu
