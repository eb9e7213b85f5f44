// The work of the backward pass: which tile stays in shared memory, and which blocks pass it.
#pragma once

#include "shape.cuh"

namespace fuseline::gpu {

// Items of a pass over tiles of `tile_rows`. With keys_stay there is one for each tile of keys and
// key head (query head, if dk and dv are kept per query head); else for each tile of queries.
FUSELINE_HD AttentionOrder attention_gradient_order(const AttentionShape& shape, int tile_rows,
                                                    int head_width, bool keys_stay,
                                                    bool per_query_head) {
  AttentionOrder order = attention_order(shape, tile_rows, head_width);
  if (!keys_stay) return order;
  order.tiles = ceil_div(shape.kv_tokens, tile_rows);
  if (!per_query_head) {
    order.heads = shape.batch * shape.kv_heads;
    order.together = max_of(1, order.together / shape.shared_by());
  }
  return order;
}

// One tile that stays, and the blocks [first, end) of each of `heads` query heads that pass it.
struct GradientWork {
  int batch, stay_head, tile;  // stay_head: of the result
  int first_head, heads;
  int first, end;
  FUSELINE_HD int blocks() const { return heads * max_of(0, end - first); }
};
template <bool keys_stay>
FUSELINE_HD GradientWork gradient_work(const AttentionShape& s, const AttentionOrder& order,
                                       bool per_query_head, int index, int tile_rows,
                                       int block_rows) {
  if constexpr (!keys_stay) {
    const AttentionItem item = order.item(index, s);
    const BlockRange range = key_blocks(s, item.tile * tile_rows, tile_rows, block_rows);
    return {item.batch, item.head, item.tile, item.head, 1, range.first, range.end};
  } else {
    AttentionShape heads_of = s;
    if (!per_query_head) heads_of.heads = s.kv_heads;
    const AttentionItem item = order.item(index, heads_of);
    const int tile = order.tiles - 1 - item.tile;  // the first keys are seen most
    const int begin = tile * tile_rows;
    const int end = min_of(begin + tile_rows, s.kv_tokens);
    const int count = per_query_head ? 1 : s.shared_by();
    return {item.batch,
            item.head,
            tile,
            item.head * count,
            count,
            s.first_query(begin) / block_rows,
            ceil_div(s.end_query(end), block_rows)};
  }
}

}  // namespace fuseline::gpu
