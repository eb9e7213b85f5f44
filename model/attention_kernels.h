// What our own attention kernels have: the simulator and the emitter ask the same functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "model/program.h"

namespace fuseline {

// Of wider heads our own decode kernel has a second launch, which joins what thread blocks have
// made of a part of the keys each. Of narrower ones the last thread block joins them.
inline constexpr std::int64_t widest_joined_head = 256;

// Whether those for the warp-group instruction have these heads. Those for the warp's own
// instruction, which is a fraction as fast, take all others.
// `bias_columns`: of the rows of the bias's tensor, as it lies in memory; 0 without a bias. The
// copy engine brings the bias, so its rows must start at multiples of 16 bytes.
bool has_wgmma_attention(const AttentionMainloop& m, std::int64_t bias_columns);

// Columns of a head so wide that these kernels bring into shared memory: whole panels of 64. Of
// heads of 80, 96 and 112 columns the second panel ends with columns of the next head, which no
// product reads.
constexpr std::int64_t panel_columns(std::int64_t width) { return ceil_div(width, 64) * 64; }

// Keys that a block of the forward one has: wide heads leave less shared memory for the ring and
// fewer registers for scores. cuda/kernels/attention/shape.cuh has the same for the device, and a
// test compares them.
constexpr std::int64_t forward_block_keys(std::int64_t key_width, std::int64_t value_width) {
  return key_width > 192 || value_width > 128 ? 80 : 128;
}

// How our own decode kernel shares out its work. cuda/kernels/attention/decode_work.cuh and
// shape.cuh have the same text for the device, and a test compares them.

inline constexpr std::int64_t most_key_splits = 80;

// Splits of the keys so that the thread blocks (`slots` run at once) finish together: the fewest
// rounds times keys of a block, and among those the fewest splits. A split has at least 128 keys.
// `tiles`: of queries, of all sequences and heads.
constexpr std::int64_t key_splits(std::int64_t tiles, std::int64_t keys, std::int64_t slots) {
  constexpr std::int64_t kLeastKeys = 128;
  constexpr std::int64_t kBeginAndJoin = 64;  // what a block costs beside its keys, in keys
  const std::int64_t most = std::max<std::int64_t>(1, std::min(most_key_splits, keys / kLeastKeys));
  std::int64_t best = 1;
  std::int64_t best_cost = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const std::int64_t cost =
        ceil_div(tiles * splits, slots) * (ceil_div(keys, splits) + kBeginAndJoin);
    if (splits > 1 && cost >= best_cost) continue;
    best = splits;
    best_cost = cost;
  }
  return best;
}

// Bytes of shared memory that a thread block of it has: four warps with a ring of `stages` times 16
// keys and values each, whose rows are 16 bytes longer than the head is wide.
std::int64_t decode_shared_bytes(const AttentionShape& shape, std::int64_t stages);

// Heads (of all sequences) whose tiles of queries our own forward kernel takes together, the last
// tiles first. `at_once`: thread blocks that run at once.
std::int64_t heads_together(const AttentionShape& shape, std::int64_t tile_rows,
                            std::int64_t at_once);

}  // namespace fuseline
