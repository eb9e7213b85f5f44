// Counters in global memory in place of grid barriers.
#pragma once

#include "../element.cuh"
#include "instruction.cuh"

namespace fuseline::gpu {

FUSELINE_DEVICE u32 load_acquire(const u32* from) {
  u32 value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
// What the thread has seen and stored comes before what it adds from here on.
FUSELINE_DEVICE void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
FUSELINE_DEVICE void add_relaxed(u32* to, u32 amount) {
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(amount) : "memory");
}
// Between ordinary accesses and those of the copy engine, in global memory too.
FUSELINE_DEVICE void fence_proxies() { asm volatile("fence.proxy.async;" ::: "memory"); }

FUSELINE_DEVICE u64 nanoseconds() {
  u64 time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// A wait that lasts seconds is a fault, not a slow GPU: the launch ends with an error.
struct Patience {
  int left = 1 << 22;
  FUSELINE_DEVICE void lose() {
    if (--left == 0) __trap();
  }
};

// This launch's set of counters. A counter is complete when it has come from minus its goal to 0,
// so that nobody has to look up goals.
class BlockCounters {
 public:
  FUSELINE_DEVICE BlockCounters(const BlockArgs& args, u32 set)
      : counters_(reinterpret_cast<u32*>(args.counters) +
                  set * static_cast<u32>(args.counter_count)) {}

  // A counter, by the whole warp; -1 is none.
  FUSELINE_DEVICE void wait_for(int counter) const {
    if (counter >= 0) {
      Patience patience;
      while (!is_complete(counter)) patience.lose();
    }
    __syncwarp();
  }
  // All of the instruction's own waits at once, a lane each.
  FUSELINE_DEVICE void wait(const BlockInstruction& in) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    wait_for(lane < 3 ? in.waits[lane] : -1);
  }
  // Which counters of a range are complete, a bit each; bits behind the range are set.
  FUSELINE_DEVICE u32 complete(int first, int count) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const u32 bits = __ballot_sync(0xffffffffU, lane >= count || is_complete(first + lane));
    __syncwarp();
    return bits;
  }
  FUSELINE_DEVICE void wait_for_all(int first, int count) const {
    Patience patience;
    while (complete(first, count) != 0xffffffffU) patience.lose();
  }
  // One lane of a warp whose results are in memory, behind __syncwarp or a barrier. One fence for
  // both counters, since a fence lasts until all stores have been answered.
  FUSELINE_DEVICE void add(const BlockInstruction& in, int amount) const {
    fence_gpu();
    FUSELINE_UNROLL
    for (int a = 0; a < 2; ++a)
      if (in.adds[a] >= 0) add_relaxed(counters_ + in.adds[a], static_cast<u32>(amount));
  }

 private:
  [[nodiscard]] FUSELINE_DEVICE bool is_complete(int counter) const {
    return static_cast<int>(load_acquire(counters_ + counter)) >= 0;
  }

  u32* counters_;
};

}  // namespace fuseline::gpu
