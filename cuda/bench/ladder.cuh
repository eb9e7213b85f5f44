// Host side of the ladder: one launcher per rung, y[M, N] = a[M, K] b[N, K]^T.
#pragma once

#include "../kernels/ladder/01_naive.cu"
#include "../kernels/ladder/02_shared_tiles.cu"
#include "../kernels/ladder/03_mma_sync.cu"
#include "../kernels/ladder/04_first_wgmma.cu"
#include "../kernels/ladder/05_warp_specialised.cu"
#include "../kernels/ladder/06_persistent_cluster.cu"
#include "../kernels/ladder/07_product.cu"
#include "launch_sm80.cuh"

namespace fuseline::bench {

inline dim3 tiles(int M, int N, int tile_m, int tile_n) {
  return {static_cast<unsigned>(gpu::ceil_div(N, tile_n)),
          static_cast<unsigned>(gpu::ceil_div(M, tile_m))};
}

template <class T>
void launch_rung(int rung, const Operands& op, const T* a, const T* b, T* y, int ldy,
                 cudaStream_t stream) {
  namespace ladder = gpu::ladder;
  const auto [M, N, K, lda, ldb] = op;
  const auto allow = [](auto* kernel, int bytes) {
    FUSELINE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  };
  const auto map = [&](const T* data, int rows, int ld, int box_rows) {
    return matrix_map(data, rows, K, ld, box_rows, 64);
  };
  if (rung == 1) {
    ladder::naive<<<tiles(M, N, 8, 32), dim3(32, 8), 0, stream>>>(M, N, K, a, lda, b, ldb, y, ldy);
  } else if (rung == 2) {
    ladder::shared_tiles<<<tiles(M, N, 128, 128), 256, 0, stream>>>(M, N, K, a, lda, b, ldb, y,
                                                                    ldy);
  } else if (rung == 4) {
    allow(ladder::first_wgmma<T>, ladder::first_bytes);
    ladder::first_wgmma<<<tiles(M, N, 128, 128), 128, ladder::first_bytes, stream>>>(
        map(a, M, lda, 128), map(b, N, ldb, 128), M, N, K, y, ldy);
  } else if (rung == 5) {
    allow(ladder::warp_specialised<T>, ladder::ring_bytes);
    ladder::warp_specialised<<<tiles(M, N, 128, 256), 384, ladder::ring_bytes, stream>>>(
        map(a, M, lda, 128), map(b, N, ldb, 256), M, N, K, y, ldy);
  } else if (rung == 6) {
    allow(ladder::persistent_cluster<T>, ladder::ring_bytes);
    const int blocks =
        std::min(multiprocessors() / 2, gpu::ceil_div(M, 256) * gpu::ceil_div(N, 256)) * 2;
    ladder::persistent_cluster<<<static_cast<unsigned>(blocks), 384, ladder::ring_bytes, stream>>>(
        map(a, M, lda, 128), map(b, N, ldb, 128), M, N, K, y, ldy);
  } else {
    using E = gpu::StoreResult<gpu::TileOut<T>>;
    const typename E::Params params{tile_out(y, M, N, ldy)};
    if (rung == 3)
      launch_sm80<ladder::MmaSync<T>, E>(op, a, b, 8, params, stream);
    else
      launch_sm90<ladder::Product<T>, E>(op, a, b, 8, params, stream);
  }
  FUSELINE_CUDA(cudaGetLastError());
}

}  // namespace fuseline::bench
