// Softmax over key blocks that come one after another. Of each row a thread keeps the largest score
// m so far and its share l of the sum of exp(scale (s - m)); a larger maximum scales down what was
// summed before: l and the accumulated output.
//
// Scores are a tensor-core accumulator: a thread has two rows (half 0 and 1), and of every 8
// columns two: s[4 j + 2 half + e] is column 8 j + 2 (lane mod 4) + e. A row lies in 4 lanes.
#pragma once

#include "../element.cuh"
#include "../epilogue/map.cuh"
#include "shape.cuh"

namespace fuseline::gpu {

constexpr float minus_infinity = __builtin_bit_cast(float, 0xff800000U);
constexpr float log2_of_e = 1.4426950408889634F;
constexpr float ln_of_2 = 0.6931471805599453F;

// 2^x by the special-function unit; results below 2^-126 become 0.
FUSELINE_DEVICE float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

FUSELINE_DEVICE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}
FUSELINE_DEVICE float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}

// Scores of keys that a query does not see become -inf. `key`: of the block's column 0;
// `first_row`: the query of half 0 in this thread.
template <int count>
FUSELINE_DEVICE void mask_scores(float (&s)[count], const AttentionShape& shape, int first_row,
                                 int key) {
  const int col = key + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int end = shape.end_key(first_row + 8 * half) - col;
    const int begin = shape.first_key(first_row + 8 * half) - col;
#pragma unroll
    for (int j = 0; j < count / 4; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        if (8 * j + e >= end || 8 * j + e < begin) s[4 * j + 2 * half + e] = minus_infinity;
  }
}

// Scores s of unscaled products become c tanh(s / c), unscaled again: what follows scales them. It
// comes ahead of the mask, since tanh would make -inf a number.
template <int count>
FUSELINE_DEVICE void cap_scores(float (&s)[count], const AttentionShape& shape) {
  const float in = shape.scale / shape.softcap, out = shape.softcap / shape.scale;
#pragma unroll
  for (float& x : s) x = out * tanh_of(in * x);
}

// What is added to scores, [H·T, S]: row h·T + t, the same for every sequence.
template <class Element>
struct ScoreBias {
  const Element* data;
  long long ld;

  // Divided by the scale, since what follows scales scores; 0 where no query or key is.
  FUSELINE_DEVICE float unscaled(const AttentionShape& shape, int head, int token, int key) const {
    if (token >= shape.q_tokens || key >= shape.kv_tokens) return 0.0F;
    const long long row = static_cast<long long>(head) * shape.q_tokens + token;
    return to_float(data[row * ld + key]) / shape.scale;
  }
};

// The same of a block of one head, which is loaded ahead of the block's products. Where no query or
// key is, it is that of another: nobody stores such a query, and the mask takes such a key away.
template <int count, class Element>
struct BiasOfBlock {
  Element values[count];  // as the scores lie

  FUSELINE_DEVICE void load(const ScoreBias<Element>& bias, const AttentionShape& shape, int head,
                            int first_row, int key) {
    const int col = key + static_cast<int>(threadIdx.x % 4) * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int token = min_of(first_row + 8 * half, shape.q_tokens - 1);
      const Element* row =
          bias.data + (static_cast<long long>(head) * shape.q_tokens + token) * bias.ld;
#pragma unroll
      for (int j = 0; j < count / 4; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          values[4 * j + 2 * half + e] = row[min_of(col + 8 * j + e, shape.kv_tokens - 1)];
    }
  }
  // Behind the cap and ahead of the mask; divided by the scale, since what follows scales scores.
  FUSELINE_DEVICE void add_to(float (&s)[count], const AttentionShape& shape) const {
    const float unscaled = 1.0F / shape.scale;
#pragma unroll
    for (int i = 0; i < count; ++i) s[i] += to_float(values[i]) * unscaled;
  }
};

struct OnlineSoftmax {
  float m[2] = {minus_infinity, minus_infinity};  // unscaled
  float l[2] = {0.0F, 0.0F};                      // this thread's share

  // Turns scores into exp(scale (s - m)), which is at most 1. `keep`: what l and the output were
  // multiplied with.
  template <int count>
  FUSELINE_DEVICE void step(float (&s)[count], float scale_log2, float (&keep)[2]) {
    // Two chains per row: one warp alone must keep its scheduler busy.
    float top[4] = {s[0], s[2], s[4], s[6]};
#pragma unroll
    for (int i = 0; i < count / 2; ++i)
      top[i % 4] = fmaxf(top[i % 4], fmaxf(s[2 * i], s[2 * i + 1]));
    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float most = fmaxf(m[half], quad_max(fmaxf(top[half], top[half + 2])));
      shift[half] = most == minus_infinity ? 0.0F : most * scale_log2;
      keep[half] = power_of_2(m[half] * scale_log2 - shift[half]);
      m[half] = most;
    }
    float sum[4] = {0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < count; ++i) {
      s[i] = power_of_2(s[i] * scale_log2 - shift[i / 2 % 2]);
      sum[i / 2 % 4] += s[i];
    }
    l[0] = l[0] * keep[0] + (sum[0] + sum[2]);
    l[1] = l[1] * keep[1] + (sum[1] + sum[3]);
  }
  // The row's whole sum: all four lanes call this.
  FUSELINE_DEVICE void finish() {
    l[0] = quad_sum(l[0]);
    l[1] = quad_sum(l[1]);
  }
  FUSELINE_DEVICE float inverse(int half) const { return l[half] > 0.0F ? 1.0F / l[half] : 0.0F; }
  FUSELINE_DEVICE float log_sum_exp(int half, float scale) const {
    return l[half] > 0.0F ? m[half] * scale + logf(l[half]) : minus_infinity;
  }
};

template <int count>
FUSELINE_DEVICE void scale_rows(float (&o)[count], const float (&by)[2]) {
#pragma unroll
  for (int j = 0; j < count / 4; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) o[4 * j + i] *= by[i / 2];
}

}  // namespace fuseline::gpu
