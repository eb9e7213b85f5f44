// Rung 1: one thread per element of the result.
//
// Idea: none yet; this is the definition. Every thread reads a whole row of A and of B from global
// memory, 4 bytes for every multiply-add, so the kernel waits for memory and the tensor cores idle.
// Measured (H200, 4096³, bf16): 0.5 TFLOP/s, 0.001 of cuBLASLt in the same run.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu::ladder {

// y[M, N] = a[M, K] b[N, K]^T. Blocks of 32 × 8 threads; neighbouring threads share a row of A.
template <class T>
__global__ void naive(int M, int N, int K, const T* a, int lda, const T* b, int ldb, T* y,
                      int ldy) {
  const int n = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int m = static_cast<int>(blockIdx.y * 8 + threadIdx.y);
  if (m >= M || n >= N) return;
  float sum = 0;
  for (int k = 0; k < K; ++k)
    sum += to_float(a[static_cast<long long>(m) * lda + k]) *
           to_float(b[static_cast<long long>(n) * ldb + k]);
  y[static_cast<long long>(m) * ldy + n] = from_float<T>(sum);
}

}  // namespace fuseline::gpu::ladder
