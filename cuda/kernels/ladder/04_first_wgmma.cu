// Rung 4: Hopper's own instructions: the copy engine (TMA) brings tiles, wgmma multiplies them from
// shared memory.
//
// Idea: one thread asks for a whole tile, swizzled on arrival, and 128 threads issue one
// instruction for 64 × 128 × 16. Nothing overlaps yet inside a block: copy, wait, multiply, wait.
// Several blocks on an SM cover for each other.
// Measured (H200, 4096³, bf16): 521.4 TFLOP/s, 0.677 of cuBLASLt in the same run.
#pragma once

#include "../ptx/sync.cuh"
#include "../ptx/tma.cuh"
#include "../ptx/wgmma.cuh"
#include "registers_to_global.cuh"

namespace fuseline::gpu::ladder {

constexpr int first_tile = 128;                       // rows and columns
constexpr int first_bytes = 2 * first_tile * 64 * 2;  // A and B
// Boxes of both maps: 64 columns (of K), 128 rows. 128 threads, first_bytes of shared memory.
template <class T>
__global__ void __launch_bounds__(128)
    first_wgmma(const __grid_constant__ TmaMap a, const __grid_constant__ TmaMap b, int M, int N,
                int K, T* y, int ldy) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ u64 barrier_memory;
  const u32 a_tile = shared_address(shared);
  const u32 b_tile = a_tile + first_tile * 128;
  const u32 barrier = shared_address(&barrier_memory);
  const int m0 = static_cast<int>(blockIdx.y) * first_tile;
  const int n0 = static_cast<int>(blockIdx.x) * first_tile;
  if (threadIdx.x == 0) {
    mbarrier_init(barrier, 1);
    mbarrier_init_fence();
  }
  __syncthreads();

  float acc[2][first_tile / 2];
  for (int k = 0; k < K; k += 64) {
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect(barrier, first_bytes);
      tma_load(a_tile, a, k, m0, barrier);
      tma_load(b_tile, b, k, n0, barrier);
    }
    mbarrier_wait(barrier, k / 64 % 2);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int s = 0; s < 2; ++s)
        Wgmma<T, first_tile, 0, 0>::run(acc[s], wgmma_tile(a_tile + s * 64 * 128 + i * 32, 0),
                                        wgmma_tile(b_tile + i * 32, 0), k > 0 || i > 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();  // all warps have read the tile before the next copy overwrites it
  }
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    wgmma_pin(acc[s]);
    store_registers(acc[s], y, ldy, m0 + 64 * s, n0, M, N);
  }
}

}  // namespace fuseline::gpu::ladder
