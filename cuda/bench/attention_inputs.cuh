// Shapes, random operands and reference results of attention.
#pragma once

#include "attention_reference.cuh"
#include "tensor_map.cuh"

namespace fuseline::bench {

struct Case {
  const char* name;
  int d, batch, heads, kv_heads, q_tokens, kv_tokens;
  bool causal;
  int window = 0;
};

inline gpu::AttentionShape shape_of(const Case& c) {
  // Caches have room for 5 more tokens where fewer queries than keys are given.
  const int room = c.q_tokens == c.kv_tokens ? 0 : 5;
  return {c.batch,    c.heads,     c.kv_heads,
          c.q_tokens, c.kv_tokens, c.kv_tokens + room,
          c.causal,   c.window,    1.0F / std::sqrt(static_cast<float>(c.d))};
}

// q, k and v: slices of one matrix where T = S, as the fused QKV product leaves them; else q and
// two caches.
template <class T>
struct Inputs {
  gpu::AttentionShape shape;
  int d;
  Buffer<T> qkv, k_cache, v_cache;
  AttentionOperands<T> operands;

  explicit Inputs(const Case& c, unsigned seed = 1) : shape(shape_of(c)), d(c.d) {
    const std::size_t rows = static_cast<std::size_t>(c.batch) * c.q_tokens;
    const int q_cols = c.heads * c.d, kv_cols = c.kv_heads * c.d;
    const bool fused = c.q_tokens == c.kv_tokens;
    const int ld = fused ? q_cols + 2 * kv_cols : q_cols + 8;
    qkv = Buffer<T>(rows * ld);
    fill_normal(qkv, seed);
    if (fused) {
      operands = {qkv.data(), qkv.data() + q_cols, qkv.data() + q_cols + kv_cols, ld, ld};
      return;
    }
    const std::size_t cache = static_cast<std::size_t>(c.batch) * shape.kv_rows * kv_cols;
    k_cache = Buffer<T>(cache);
    v_cache = Buffer<T>(cache);
    fill_normal(k_cache, seed + 1);
    fill_normal(v_cache, seed + 2);
    operands = {qkv.data() + 8, k_cache.data(), v_cache.data(), ld, kv_cols};
  }
  [[nodiscard]] int q_rows() const { return shape.batch * shape.q_tokens; }
  [[nodiscard]] int kv_rows() const { return shape.batch * shape.kv_rows; }
  [[nodiscard]] std::size_t y_size() const {
    return static_cast<std::size_t>(q_rows()) * shape.heads * d;
  }
  [[nodiscard]] std::size_t sums() const {
    return static_cast<std::size_t>(q_rows()) * shape.heads;
  }
};

// What the backward pass reads beside q, k, v, and its results. dk and dv have the heads of q if
// per_query_head.
template <class T>
struct Gradient {
  const T* dy;  // [B·T, H·d]
  const float *lse, *delta;
  float* dq;
  T *dk, *dv;
  bool per_query_head = false;
};

template <class Kernel>
inline void allow_shared(Kernel kernel, int bytes) {
  FUSELINE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
}

template <class T>
struct ForwardReference {
  Buffer<float> y, lse;
  explicit ForwardReference(const Inputs<T>& in) : y(in.y_size()), lse(in.sums()) {
    const auto& s = in.shape;
    const int bytes = 8 * s.kv_tokens;
    allow_shared(attention_reference<T>, 200 * 1024);
    attention_reference<T><<<dim3(static_cast<unsigned>(s.q_tokens), static_cast<unsigned>(s.heads),
                                  static_cast<unsigned>(s.batch)),
                             128, bytes>>>(in.operands, s, in.d, y.data(), lse.data(), nullptr,
                                           nullptr, nullptr, nullptr);
    FUSELINE_CUDA(cudaGetLastError());
  }
};

}  // namespace fuseline::bench
