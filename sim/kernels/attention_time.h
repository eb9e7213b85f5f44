// Time of attention over whole tiles of queries, from shapes, without memory: forward and gradient.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

inline constexpr std::int64_t kQueryTile = 128;  // queries of one head that a thread block works on
inline constexpr std::int64_t kKeyTile = 128;    // keys it takes at a time

// Keys that queries [first, first + count) see, in whole tiles.
std::int64_t rounded_keys(const AttentionShape& shape, std::int64_t first_query, std::int64_t count,
                          std::int64_t key_tile = kKeyTile);

// Time of prefill attention from shapes, without memory. The query tiles of head after head, in
// ascending order, go to whichever SM is free first; a tile costs its two products, as far as
// softmax does not hide them, its softmax, and the way of Q and the result. The longest-loaded SM
// sets the time.
struct PrefillTime {
  Seconds tensor;  // products and transfers on the longest-loaded SM
  Seconds exp;     // softmax on the same
};
PrefillTime prefill_time(const AttentionShape& shape, const Gpu& gpu, double clock_factor = 1.0);

// Of our own forward kernel for the warp-group instruction
// (cuda/kernels/attention/forward_sm90.cuh). Heads come in groups, and in a group the last tiles,
// which see most keys, come first. Both halves of a tile are computed, also where the second has no
// rows. A key column costs its softmax however wide the head is.
PrefillTime own_prefill_time(const AttentionShape& shape, const Gpu& gpu);

// Whether a plan's attention takes the kernels for the warp's own instruction on a GPU that has the
// faster one (model/attention_kernels.h). `bias_columns`: of the bias's rows in memory.
bool runs_generic_attention(const AttentionMainloop& m, std::int64_t bias_columns,
                            Implementation implementation, const Gpu& gpu);
// Of these (cuda/kernels/attention/generic.cuh): tiles of 64 rows, those with most work first. The
// gradient has three launches, which make S three times and dP twice.
PrefillTime generic_prefill_time(const AttentionShape& shape, const Gpu& gpu);
PrefillTime generic_gradient_time(const AttentionShape& shape, const Gpu& gpu);

// Of the gradient. The library's kernel has five products and walks tiles as the forward one. Our
// own has two passes, whose seven products keep every sum on chip: past tiles of keys, one for each
// key head, which take all its query heads; and past tiles of queries. `per_query_head`: dK and dV
// are not summed over query heads, which then have tiles of their own.
PrefillTime gradient_time(const AttentionShape& shape, const Gpu& gpu,
                          Implementation implementation, bool per_query_head);

// Beside the gradient's pass: the library zeroes the sums of dQ before it adds to them, in fp32;
// our own second pass is a launch of its own.
Seconds gradient_overhead(const AttentionShape& shape, Implementation implementation,
                          const Gpu& gpu);

}  // namespace fuseline
