// The bulk tensor copy engine (TMA). One thread describes a box of a tensor by its corner; the
// engine computes the addresses, swizzles, clips at the tensor's edges (reads there give zeros,
// writes there are dropped) and reports the bytes to an mbarrier or to the thread's bulk groups.
#pragma once

#include "mbarrier.cuh"

namespace fuseline::gpu {

// Has the layout of the driver's CUtensorMap; the host encodes it. Passed by value as a
// __grid_constant__ kernel parameter.
struct alignas(64) TmaMap {
  u64 opaque[16];
};

FUSELINE_DEVICE void tma_prefetch_map(const TmaMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Box at column `x` (the contiguous dimension) and row `y` of a matrix, into shared memory.
FUSELINE_DEVICE void tma_load(u32 to, const TmaMap& map, int x, int y, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
// The same into all thread blocks of the cluster whose bit is set, at the same address in each;
// the bytes are reported to the barrier with the same address in each.
FUSELINE_DEVICE void tma_load_multicast(u32 to, const TmaMap& map, int x, int y, u32 barrier,
                                        u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier), "h"(blocks)
      : "memory");
}
// `x` onward of a vector.
FUSELINE_DEVICE void tma_load_vector(u32 to, const TmaMap& map, int x, u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2}], [%3];" ::"r"(to),
      "l"(&map), "r"(x), "r"(barrier)
      : "memory");
}

// Of many matrices that lie side by side and below each other: the one that is `head`-th and
// `stack`-th. Its own edges clip.
FUSELINE_DEVICE void tma_load(u32 to, const TmaMap& map, int x, int y, int head, int stack,
                              u32 barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(head), "r"(stack), "r"(barrier)
      : "memory");
}
FUSELINE_DEVICE void tma_load_multicast(u32 to, const TmaMap& map, int x, int y, int head,
                                        int stack, u32 barrier, u16 blocks) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(head), "r"(stack), "r"(barrier), "h"(blocks)
      : "memory");
}

// Box from shared memory to a matrix; belongs to the calling thread's current bulk group.
FUSELINE_DEVICE void tma_store(const TmaMap& map, u32 from, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}
FUSELINE_DEVICE void tma_store(const TmaMap& map, u32 from, int x, int y, int head, int stack) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(
          &map),
      "r"(x), "r"(y), "r"(head), "r"(stack), "r"(from)
      : "memory");
}
// The same as the first, added to what the matrix holds.
FUSELINE_DEVICE void tma_store_add(const TmaMap& map, u32 from, int x, int y) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"
      " [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}
FUSELINE_DEVICE void tma_commit_group() { asm volatile("cp.async.bulk.commit_group;"); }
// Waits until at most `pending` of the thread's groups still read shared memory.
template <int pending>
FUSELINE_DEVICE void tma_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
// Waits until at most `pending` of the thread's groups are not yet complete in global memory.
template <int pending>
FUSELINE_DEVICE void tma_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace fuseline::gpu
