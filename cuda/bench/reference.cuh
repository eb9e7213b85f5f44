// The fp32 reference: every product and sum in fp32 on the ordinary cores, any layout. Slow, plain.
#pragma once

#include <cmath>

#include "../kernels/byte_types.cuh"
#include "support.cuh"

namespace fuseline::bench {

// y[M, N] = sum over k of a(m, k) b(n, k), with element strides for both indexes of a and b.
template <class T>
__global__ void reference_gemm_kernel(int M, int N, int K, const T* a, long long a_m, long long a_k,
                                      const T* b, long long b_n, long long b_k, float* y) {
  constexpr int tile = 64;
  constexpr int depth = 16;
  __shared__ float as[depth][tile + 1];
  __shared__ float bs[depth][tile + 1];
  const int m0 = static_cast<int>(blockIdx.y) * tile;
  const int n0 = static_cast<int>(blockIdx.x) * tile;
  const int tx = static_cast<int>(threadIdx.x) % 16;
  const int ty = static_cast<int>(threadIdx.x) / 16;
  float sum[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += depth) {
    for (int i = static_cast<int>(threadIdx.x); i < tile * depth; i += 256) {
      const int k = i % depth;
      const int r = i / depth;
      const bool k_in = k0 + k < K;
      as[k][r] = k_in && m0 + r < M ? gpu::to_float(a[(m0 + r) * a_m + (k0 + k) * a_k]) : 0.0F;
      bs[k][r] = k_in && n0 + r < N ? gpu::to_float(b[(n0 + r) * b_n + (k0 + k) * b_k]) : 0.0F;
    }
    __syncthreads();
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] += as[k][ty + 16 * i] * bs[k][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int m = m0 + ty + 16 * i;
      const int n = n0 + tx + 16 * j;
      if (m < M && n < N) y[static_cast<long long>(m) * N + n] = sum[i][j];
    }
}

template <class T>
Buffer<float> reference_gemm(int M, int N, int K, const T* a, int lda, bool a_is_km, const T* b,
                             int ldb, bool b_is_kn) {
  Buffer<float> y(static_cast<std::size_t>(M) * static_cast<std::size_t>(N));
  const dim3 grid(static_cast<unsigned>((N + 63) / 64), static_cast<unsigned>((M + 63) / 64));
  reference_gemm_kernel<<<grid, 256>>>(M, N, K, a, a_is_km ? 1 : lda, a_is_km ? lda : 1, b,
                                       b_is_kn ? 1 : ldb, b_is_kn ? ldb : 1, y.data());
  FUSELINE_CUDA(cudaGetLastError());
  return y;
}

// ‖out - reference‖ / ‖reference‖ over a [rows, cols] part of `out`, and whether anything around it
// (padding columns, rows below) was written over its poison.
struct Comparison {
  double relative = 0;
  int overran = 0;  // 1 + the furthest column past the end that was written, or the row times 10⁶
  bool good(double tolerance) const { return relative < tolerance && overran == 0; }  // NaN fails
};

struct Totals {
  double error, norm;
  int overran;
};

template <class T>
__global__ void compare_kernel(const T* out, int ld, int all_rows, int rows, int cols,
                               const float* reference, Totals* totals) {
  constexpr int granule = 16 / sizeof(T);
  double error = 0;
  double norm = 0;
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < 1LL * all_rows * ld;
       i += 256LL * gridDim.x) {
    const int row = static_cast<int>(i / ld);
    const int col = static_cast<int>(i % ld);
    const float value = gpu::to_float(out[i]);
    if (row < rows && col < cols) {
      const float want = reference[1LL * row * cols + col];
      error += (double(value) - want) * (double(value) - want);
      norm += double(want) * want;
    } else if (!isnan(value) && (row >= rows || col >= (cols + granule - 1) / granule * granule)) {
      atomicMax(&totals->overran, row < rows ? 1 + col - cols : (1 + row - rows) * 1000000);
    }
  }
  atomicAdd(&totals->error, error);
  atomicAdd(&totals->norm, norm);
}

// `out` was poisoned and has all_rows ≥ rows rows of ld ≥ cols elements.
template <class T>
Comparison compare(const T* out, int ld, int all_rows, int rows, int cols, const float* reference) {
  Buffer<Totals> totals(1);
  totals.zero();
  compare_kernel<<<512, 256>>>(out, ld, all_rows, rows, cols, reference, totals.data());
  FUSELINE_CUDA(cudaGetLastError());
  const Totals t = totals.host()[0];
  return {std::sqrt(t.error / t.norm), t.overran};
}

}  // namespace fuseline::bench
