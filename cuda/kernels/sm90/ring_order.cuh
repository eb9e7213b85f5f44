// The order of what the producer sends through the ring of shared-memory stages. Two kinds of entry
// share the ring: steps of K (a tile of A and one of B), and slabs: what an epilogue loads for 64
// columns (residual tiles, bias vectors). So the epilogue's loads are under way while the mainloop
// still multiplies, and cost no shared memory of their own.
//
//   cooperative (both warpgroups on one tile):      k k k k k s s s s | k k k k k s s s s | ...
//   ping-pong (one tile per warpgroup; the slabs
//   of a tile lie among the next tile's steps):     k k k k k | k s k s k s k s k | ... | s s s s
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu {

// A place in the ring: the stage, and the parity of how often the ring has gone round.
template <int stages>
struct RingPlace {
  u32 stage = 0;
  u32 parity = 0;

  FUSELINE_HD void next() {
    if (++stage == stages) {
      stage = 0;
      parity ^= 1;
    }
  }
  FUSELINE_HD RingPlace after(int entries) const {
    const u32 place = stage + static_cast<u32>(entries);
    return {place % stages, parity ^ ((place / stages) & 1)};
  }
};

// Ping-pong: the slabs of the tile before lie one after each of the first steps, the rest after the
// last step.
FUSELINE_HD constexpr int pingpong_slab_entry(int slab, int k_steps) {
  return slab < k_steps ? 2 * slab + 1 : k_steps + slab;
}

}  // namespace fuseline::gpu
