// Online log-sum-exp with target select: the LM head's logits never need to be stored. Each row
// and block of 128 columns leaves its maximum, the sum of exponentials above it, and the target's
// logit if the block holds it (else 0); a finisher joins the blocks.
//
// Online: when a larger maximum m' comes, what was summed below m is scaled by exp(m - m').
#pragma once

#include "map.cuh"
#include "reduce.cuh"
#include "vector.cuh"

namespace fuseline::gpu {

struct LogSumExpState {
  float max[2] = {negative_infinity, negative_infinity};
  float sum[2] = {0.0F, 0.0F};
  float target[2] = {0.0F, 0.0F};
};

// Joins (max, sum) of two parts of a row. Both may be empty (max = -infinity).
FUSELINE_DEVICE void join_log_sums(float& max, float& sum, float other_max, float other_sum) {
  const float joined = fmaxf(max, other_max);
  const float base = joined == negative_infinity ? 0.0F : joined;
  sum = sum * fast_exp(max - base) + other_sum * fast_exp(other_max - base);
  max = joined;
}

// `targets`: the target's column, per row. Partial: [rows, 3 · blocks], the maxima first, then the
// sums, then the targets' logits.
template <class Target, class Slab, int groups>
FUSELINE_DEVICE void online_log_sum_exp(const Slab& slab, const Partials& to,
                                        const RowsIn<Target>& targets, LogSumExpState& state,
                                        const Fragment<2, groups>& x) {
  static_assert(Slab::tile_cols % partial_tile == 0, "a tile must hold whole blocks");
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = slab.row + fragment_row(lane, half);
    const int target =
        row < slab.rows ? static_cast<int>(targets.data[static_cast<long long>(row) * targets.ld])
                        : -1;
    float top = negative_infinity;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int col = slab.col + fragment_col(2, lane, i / 2, i % 2);
      if (col < slab.cols) top = fmaxf(top, x.at(half, i / 2, i % 2));
    }
    float sum = 0.0F;
#pragma unroll
    for (int i = 0; i < 2 * groups; ++i) {
      const int col = slab.col + fragment_col(2, lane, i / 2, i % 2);
      if (col < slab.cols) sum += fast_exp(x.at(half, i / 2, i % 2) - top);
      if (col == target) state.target[half] = x.at(half, i / 2, i % 2);
    }
    join_log_sums(state.max[half], state.sum[half], top, sum);

    if (ends_block<8 * groups>(slab)) {
#pragma unroll
      for (int distance = 1; distance < 4; distance *= 2) {
        const float other_max = __shfl_xor_sync(0xffffffffU, state.max[half], distance);
        const float other_sum = __shfl_xor_sync(0xffffffffU, state.sum[half], distance);
        join_log_sums(state.max[half], state.sum[half], other_max, other_sum);
        state.target[half] += __shfl_xor_sync(0xffffffffU, state.target[half], distance);
      }
      const int block = slab.col / partial_tile;
      const int blocks = ceil_div(slab.cols, partial_tile);
      if (lane % 4 == 0 && row < slab.rows && block < blocks) {
        float* out = to.data + static_cast<long long>(row) * to.ld + block;
        out[0] = state.max[half];
        out[blocks] = state.sum[half];
        out[2 * blocks] = state.target[half];
      }
      state.max[half] = negative_infinity;
      state.sum[half] = state.target[half] = 0.0F;
    }
  }
}

}  // namespace fuseline::gpu
