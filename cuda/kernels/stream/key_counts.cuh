// What a thread block that counts keys has in shared memory (sort.cuh).
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu::stream {

// Threads of such a thread block. It looks at 65,536 keys in 8 rounds of loads where a warp that
// compares them takes 512.
inline constexpr int counting_threads = 256;

template <int values>
struct KeyCounts {
  int ahead[values];  // of keys ahead of the block's own; then where its first key of a value goes
  int others[values];
  int of_warp[counting_threads / 32][values];

  // The share of one thread: every thread of the block must call it.
  FUSELINE_HD constexpr void clear(int thread) {
    FUSELINE_NO_UNROLL
    for (int v = thread; v < values; v += counting_threads) ahead[v] = others[v] = 0;
    FUSELINE_NO_UNROLL
    for (int v = thread % 32; v < values; v += 32) of_warp[thread / 32][v] = 0;
  }
};

}  // namespace fuseline::gpu::stream
