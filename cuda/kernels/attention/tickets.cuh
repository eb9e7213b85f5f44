// How persistent thread blocks share out items of unequal length: whoever is free draws the next.
// Who computes an item does not change its result.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// Two counters in global memory: drawn tickets, and blocks that found none left. Both are 0 before
// and after every launch; one launch at a time may use them.
struct Tickets {
  u32* counters;
};

// One thread of each block draws until its ticket is no item. The last block to do so sets both
// counters back.
FUSELINE_DEVICE int draw_ticket(const Tickets& tickets, int items) {
  const int index = static_cast<int>(atomicAdd(tickets.counters, 1U));
  if (index >= items && atomicAdd(tickets.counters + 1, 1U) + 1 == gridDim.x) {
    tickets.counters[0] = 0;
    tickets.counters[1] = 0;
  }
  return index;
}

}  // namespace fuseline::gpu
