// How rungs 4 to 6 store: every thread writes its pairs of columns straight from registers. Four
// neighbouring lanes fill 16 bytes of a row, so only half of each 32-byte sector is written at
// once.
#pragma once

#include "../element.cuh"
#include "../fragment.cuh"

namespace fuseline::gpu::ladder {

// acc: the accumulators of wgmma.m64nNk16 for rows `row` (of the warpgroup's 64) onward.
template <class T, int count>
FUSELINE_DEVICE void store_registers(const float (&acc)[count], T* y, int ldy, int row, int col,
                                     int M, int N) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) % 128 / 32;
#pragma unroll
  for (int i = 0; i < count / 2; ++i) {
    const int m = row + 16 * warp + fragment_row(lane, i % 2);
    const int n = col + fragment_col(2, lane, i / 2, 0);
    if (m >= M || n >= N) continue;
    T* at = y + static_cast<long long>(m) * ldy + n;
    if (n + 1 < N)
      *reinterpret_cast<u32*>(at) = pack<T>(acc[2 * i], acc[2 * i + 1]);
    else
      *at = from_float<T>(acc[2 * i]);
  }
}

}  // namespace fuseline::gpu::ladder
