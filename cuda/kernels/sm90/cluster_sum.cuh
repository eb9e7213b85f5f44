// One tile's accumulators, summed over the thread blocks of a cluster.
#pragma once

#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"

namespace fuseline::gpu {

// The 128 threads of one warpgroup of every block call it with a part of the sum in `acc`; those of
// the first block leave with all of it, added in the order of the blocks. The other blocks' parts
// go through the first one's shared memory from `sums` on, `sum_bytes` for each. `filled`: whether
// the warp has rows at all; those below the matrix send nothing. It is one phase of the cluster's
// barrier: every other thread of the cluster arrives at it too.
template <int blocks, int count>
FUSELINE_DEVICE void add_up(float (&acc)[count], u32 sums, u32 sum_bytes, u32 rank, bool filled) {
  constexpr int quads = count / 4;
  const u32 mine = sums + threadIdx.x % 128 * 16;
  if (rank > 0) {
    const u32 to = address_in_block(mine + (rank - 1) * sum_bytes, 0);
    if (filled) {
#pragma unroll
      for (int q = 0; q < quads; ++q)
        store_in_cluster(to + q * 128 * 16, acc[4 * q], acc[4 * q + 1], acc[4 * q + 2],
                         acc[4 * q + 3]);
    }
    cluster_arrive();
    return;
  }
  cluster_arrive();
  cluster_wait();
  if (!filled) return;
  for (int block = 1; block < blocks; ++block) {
    const u32 from = mine + (block - 1) * sum_bytes;
#pragma unroll
    for (int q = 0; q < quads; ++q) {
      const uint4 v = load_shared_16(from + q * 128 * 16);
      acc[4 * q] += __uint_as_float(v.x);
      acc[4 * q + 1] += __uint_as_float(v.y);
      acc[4 * q + 2] += __uint_as_float(v.z);
      acc[4 * q + 3] += __uint_as_float(v.w);
    }
  }
}

}  // namespace fuseline::gpu
