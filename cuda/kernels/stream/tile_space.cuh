// How the threads of a tile loop are spread over rows of vectors: for the loop, its launch, and the
// test on the CPU.
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu::stream {

// So many of a warp's lanes, and of a block's warps, lie side by side: powers of two.
struct SideBySide {
  int lanes, warps;
};

// As many as the `vectors` of a row need, `least_lanes` or more: their loads are neighbours in memory.
// Fewer where an eighth of them or more would stand behind the last column: 144 vectors take five
// times 32 lanes, of which 16 are idle, where two times 128 left 112 idle. Eight lanes have a line of
// 128 bytes.
FUSELINE_HD SideBySide side_by_side(int vectors, int block_warps, int least_lanes) {
  int lanes = least_lanes;
  while (lanes < 32 && lanes < vectors) lanes *= 2;
  int warps = 1;
  while (2 * warps <= block_warps && warps * lanes < vectors) warps *= 2;
  const int narrowest = max_of(least_lanes, 8);
  while (8 * (ceil_div(vectors, lanes * warps) * lanes * warps - vectors) >= vectors) {
    if (warps > 1)
      warps /= 2;
    else if (lanes > narrowest)
      lanes /= 2;
    else
      break;
  }
  return {lanes, warps};
}

}  // namespace fuseline::gpu::stream
