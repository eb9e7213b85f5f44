// Attention in fp32 with plain loops, one thread block per query and head: what the kernels are
// checked against. Scores of one query are kept in shared memory.
#pragma once

#include "../kernels/attention/shape.cuh"
#include "support.cuh"

namespace fuseline::bench {

template <class T>
struct AttentionOperands {
  const T *q, *k, *v;
  long long q_ld, kv_ld;
};

__device__ inline float block_sum(float x) {
  __shared__ float parts[32];
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xffffffffU, x, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
  for (unsigned i = 0; i < blockDim.x / 32; ++i) x += parts[i];
  return x;
}

// Grid (T, H, B); shared memory: S floats. `dy` null: y [B·T, H·d] and lse [B·H·T] are written.
// Otherwise they are read with dy, and dq, dk, dv (fp32; dk, dv [B·kv_rows, Hkv·d], zeroed before)
// are written.
template <class T>
__global__ void attention_reference(AttentionOperands<T> in, gpu::AttentionShape shape, int d,
                                    float* y, float* lse, const T* dy, float* dq, float* dk,
                                    float* dv) {
  extern __shared__ float p[];
  const int t = static_cast<int>(blockIdx.x), h = static_cast<int>(blockIdx.y);
  const long long b = blockIdx.z;
  const int first = shape.first_key(t), end = max(shape.end_key(t), 0);
  const long long row = b * shape.q_tokens + t;
  const T* q = in.q + row * in.q_ld + h * d;
  const long long kv = b * shape.kv_rows * in.kv_ld + h / shape.shared_by() * d;
  float sum = 0;
  for (int s = first + static_cast<int>(threadIdx.x); s < end; s += static_cast<int>(blockDim.x)) {
    float x = 0;
    for (int c = 0; c < d; ++c)
      x += static_cast<float>(q[c]) * static_cast<float>(in.k[kv + s * in.kv_ld + c]);
    // Random scores stay far below 88, so no maximum is needed.
    p[s] = expf(x * shape.scale);
    sum += p[s];
  }
  sum = block_sum(sum);
  const long long sums = (b * shape.heads + h) * shape.q_tokens + t;
  const long long out = row * shape.heads * d + h * d;
  if (dy == nullptr) {
    if (threadIdx.x == 0) lse[sums] = logf(sum);
    for (int c = static_cast<int>(threadIdx.x); c < d; c += static_cast<int>(blockDim.x)) {
      float x = 0;
      for (int s = first; s < end; ++s) x += p[s] * static_cast<float>(in.v[kv + s * in.kv_ld + c]);
      y[out + c] = sum > 0 ? x / sum : 0.0F;
    }
    return;
  }
  float part = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += static_cast<int>(blockDim.x))
    part += y[out + c] * static_cast<float>(dy[out + c]);
  const float delta = block_sum(part);
  float* ds = p + shape.kv_tokens;
  for (int s = first + static_cast<int>(threadIdx.x); s < end; s += static_cast<int>(blockDim.x)) {
    p[s] /= sum;
    float x = 0;
    for (int c = 0; c < d; ++c)
      x += static_cast<float>(dy[out + c]) * static_cast<float>(in.v[kv + s * in.kv_ld + c]);
    ds[s] = shape.scale * p[s] * (x - delta);
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < d; c += static_cast<int>(blockDim.x)) {
    float x = 0;
    for (int s = first; s < end; ++s) x += ds[s] * static_cast<float>(in.k[kv + s * in.kv_ld + c]);
    dq[out + c] = x;
  }
  for (int i = static_cast<int>(threadIdx.x); i < (end - first) * d;
       i += static_cast<int>(blockDim.x)) {
    const int s = first + i / d, c = i % d;
    atomicAdd(dk + kv + s * in.kv_ld + c, ds[s] * static_cast<float>(q[c]));
    atomicAdd(dv + kv + s * in.kv_ld + c, p[s] * static_cast<float>(dy[out + c]));
  }
}

// ‖out − reference‖ / ‖reference‖ in fp64; NaN if any is NaN. A reference that is 0 but for its own
// rounding (the gradient of a softmax over one key) counts as of norm 1.
template <class T, class R>
double relative_error(const std::vector<T>& out, const std::vector<R>& reference) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double r = static_cast<double>(static_cast<float>(reference[i]));
    const double e = static_cast<double>(static_cast<float>(out[i])) - r;
    difference += e * e;
    norm += r * r;
  }
  return std::sqrt(difference / (norm < 1e-10 ? 1.0 : norm));
}

}  // namespace fuseline::bench
