// Sums of parts of a tile that go from one thread block to another through L2 (tile_walk.cuh).
#pragma once

#include "../ptx/sync.cuh"

namespace fuseline::gpu {

// The workspace of a kernel that shares tiles: for each part (where one block adds up, for each but
// a tile's last) a tile in fp32 for each thread block of the cluster, and in `ready` a number for
// each 64 rows of it (where all blocks add up, for each shared tile), zero before the first launch
// and after each one.
struct TailSums {
  float* sums;
  u32* ready;
  int parts;  // of a tile
};

// One warpgroup's accumulators of a part: `count` of each of its 128 threads, in fp32.
template <int count>
struct TailPlace {
  float* sums;
  u32* ready;

  // `number`: of the 64 rows, counted through all places.
  FUSELINE_DEVICE TailPlace(const TailSums& all, int number)
      : sums(all.sums + static_cast<u64>(number) * (128 * count)), ready(all.ready + number) {}

  // `barrier`: a named one among the 128 threads.
  FUSELINE_DEVICE void leave(const float (&acc)[count], int barrier) const {
    float4* to = reinterpret_cast<float4*>(sums) + threadIdx.x % 128;
#pragma unroll
    for (int q = 0; q < count / 4; ++q)
      to[q * 128] = make_float4(acc[4 * q], acc[4 * q + 1], acc[4 * q + 2], acc[4 * q + 3]);
    __threadfence();
    named_barrier(barrier, 128);
    if (threadIdx.x % 128 == 0)
      asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(ready) : "memory");
  }

  FUSELINE_DEVICE void add(float (&acc)[count], int barrier) const {
    if (threadIdx.x % 128 == 0) {
      u32 there = 0;
      do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(ready) : "memory");
      while (there == 0);
      asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" ::"l"(ready) : "memory");
    }
    named_barrier(barrier, 128);
    const float4* from = reinterpret_cast<const float4*>(sums) + threadIdx.x % 128;
#pragma unroll
    for (int q = 0; q < count / 4; ++q) {
      const float4 v = __ldcg(from + q * 128);  // not from L1, which may have an older launch's
      acc[4 * q] += v.x;
      acc[4 * q + 1] += v.y;
      acc[4 * q + 2] += v.z;
      acc[4 * q + 3] += v.w;
    }
  }
};

}  // namespace fuseline::gpu
