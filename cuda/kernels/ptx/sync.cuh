// Barriers, fences and register shares.
#pragma once

#include "../element.cuh"

namespace fuseline::gpu {

// Barrier `id` (1 to 15; 0 is __syncthreads) among `threads` threads of the block.
FUSELINE_DEVICE void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Counts as arrived there without waiting.
FUSELINE_DEVICE void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// What this thread wrote to shared memory by ordinary stores (stmatrix too) becomes visible to the
// copy engine and to wgmma, once a barrier follows.
FUSELINE_DEVICE void fence_to_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// All threads of the cluster have come here. Orders no memory accesses: a release at cluster scope
// costs a memory barrier of the whole GPU, and mbarriers have a fence of their own.
FUSELINE_DEVICE void cluster_sync_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}
// The same in two steps, and with an order of memory accesses: what a thread wrote before it
// arrived is seen by those that have waited. Each thread arrives once before it waits or leaves.
FUSELINE_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
FUSELINE_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
// Shared-memory address in thread block `rank` of the cluster, for the two functions below.
FUSELINE_DEVICE u32 address_in_block(u32 shared, u32 rank) {
  u32 address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared), "r"(rank));
  return address;
}
FUSELINE_DEVICE void store_in_cluster(u32 address, float a, float b, float c, float d) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(a), "f"(b),
               "f"(c), "f"(d)
               : "memory");
}
FUSELINE_DEVICE float4 load_from_cluster(u32 address) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
FUSELINE_DEVICE u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Moves registers between warpgroups: a producer needs few, a consumer holds the accumulators.
// Taking waits until the thread block's warps have given enough back, out of what they were
// launched with. The sum over all warpgroups after it must not exceed that, or it waits for ever.
template <int registers>
FUSELINE_DEVICE void keep_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
FUSELINE_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace fuseline::gpu
