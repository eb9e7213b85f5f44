// Rung 5: specialised warps and a ring of stages.
//
// Idea: copying and multiplying become two programs. A producer warp fills stages as they become
// empty, two consumer warpgroups multiply them as they become full; mbarriers are the only link.
// The copies run up to four stages ahead, and one wgmma group is always under way. setmaxnreg
// gives the producer's registers to the consumers, whose tile of 128 × 256 needs them.
// Measured (H200, 4096³, bf16): 683.3 TFLOP/s, 0.887 of cuBLASLt in the same run.
#pragma once

#include "../ptx/sync.cuh"
#include "../ptx/tma.cuh"
#include "../ptx/wgmma.cuh"
#include "../sm90/ring_order.cuh"
#include "registers_to_global.cuh"

namespace fuseline::gpu::ladder {

constexpr int ring_stages = 4;
constexpr int ring_stage_bytes = (128 + 256) * 64 * 2;
constexpr int ring_bytes = ring_stages * ring_stage_bytes + 128;
// Boxes: A 64 columns, 128 rows; B 64 columns, 256 rows. 384 threads, ring_bytes of shared memory.
template <class T>
__global__ void __launch_bounds__(384, 1)
    warp_specialised(const __grid_constant__ TmaMap a, const __grid_constant__ TmaMap b, int M,
                     int N, int K, T* y, int ldy) {
  extern __shared__ __align__(1024) unsigned char shared[];
  const u32 base = shared_address(shared);
  const u32 full = base + ring_stages * ring_stage_bytes;
  const u32 empty = full + 8 * ring_stages;
  const int m0 = static_cast<int>(blockIdx.y) * 128;
  const int n0 = static_cast<int>(blockIdx.x) * 256;
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x / 128), 0);
  if (threadIdx.x == 0) {
    for (int s = 0; s < ring_stages; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, 8);  // consumer warps
    }
    mbarrier_init_fence();
  }
  __syncthreads();

  RingPlace<ring_stages> place;
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x != 0) return;
    for (int k = 0; k < K; k += 64) {
      const u32 stage = base + place.stage * ring_stage_bytes;
      const u32 barrier = full + 8 * place.stage;
      mbarrier_wait(empty + 8 * place.stage, place.parity ^ 1);
      mbarrier_arrive_expect(barrier, ring_stage_bytes);
      tma_load(stage, a, k, m0, barrier);
      tma_load(stage + 128 * 128, b, k, n0, barrier);
      place.next();
    }
  } else {
    take_registers<232>();
    float acc[128];
    u32 last = 0;
    for (int k = 0; k < K; k += 64) {
      const u32 stage = base + place.stage * ring_stage_bytes;
      mbarrier_wait(full + 8 * place.stage, place.parity);
      const u32 a_tile = wgmma_tile(stage + (group - 1) * 64 * 128, 0);
      const u32 b_tile = wgmma_tile(stage + 128 * 128, 0);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i)  // 16 columns of K are 32 bytes: 2 units of a descriptor
        Wgmma<T, 256, 0, 0>::run(acc, a_tile + 2 * i, b_tile + 2 * i, k > 0 || i > 0);
      wgmma_commit();
      wgmma_wait<1>();  // the step before has been read: its stage is free
      if (k > 0 && threadIdx.x % 32 == 0) mbarrier_arrive(empty + 8 * last);
      last = place.stage;
      place.next();
    }
    wgmma_wait<0>();
    wgmma_pin(acc);
    store_registers(acc, y, ldy, m0 + (group - 1) * 64, n0, M, N);
  }
}

}  // namespace fuseline::gpu::ladder
