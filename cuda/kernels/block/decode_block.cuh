// A decode block in one launch: one thread block an SM interprets that SM's instructions
// (model/instructions/instructions.h). Four warps load, eight consume; README.md of this folder.
#pragma once

#include "attend.cuh"
#include "product.cuh"
#include "ring.cuh"

namespace fuseline::gpu {

// Statistics of a norm from sums of squares, or sums of squares by groups of columns. Warp m has
// row m.
template <class Shape>
FUSELINE_DEVICE void run_finish(const BlockArgs& args, const BlockInstruction& in) {
  const int m = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (m >= Shape::batch) return;
  const BlockCounters counters(args);
  counters.wait(in);
  if (in.operand_count > 0) counters.wait_for_all(in.operand_first, in.operand_count);
  const auto step = static_cast<BlockStep>(in.step);
  const bool first = step == BlockStep::finish_norm1, second = step == BlockStep::finish_norm2;
  const float* sums = reinterpret_cast<const float*>(second ? args.h_sums : args.y_sums) + m;
  const int* first_sum = reinterpret_cast<const int*>(args.first_sum);
  float* stats = floats(first ? args.x_stats : (second ? args.h_stats : args.y_stats), m);
  float total = 0;
  FUSELINE_NO_UNROLL
  for (int g = lane; g < args.sums_groups; g += 32) {
    float part = 0;
    if (first) {
      part = __ldcg(stats + g);
    } else {
      const int begin = __ldg(first_sum + g), behind = __ldg(first_sum + g + 1);
      // As many loads at once as most groups have sums.
      constexpr int at_once = 8;
      FUSELINE_NO_UNROLL
      for (int s = begin; s < behind; s += at_once) {
        float several[at_once];
        FUSELINE_UNROLL
        for (int i = 0; i < at_once; ++i)
          several[i] = s + i < behind ? __ldcg(sums + (s + i) * Shape::batch) : 0.0F;
        FUSELINE_UNROLL
        for (int i = 0; i < at_once; ++i) part += several[i];
      }
      stats[g] = part;
    }
    total += part;
  }
  FUSELINE_UNROLL
  for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(0xffffffffU, total, lanes);
  if (lane == 0 && step != BlockStep::finish_stats)
    floats(first ? args.r1 : args.r2, m)[0] =
        1 / sqrtf(total / static_cast<float>(args.model) + (first ? args.eps1 : args.eps2));
  __syncwarp();
  if (lane == 0) counters.add(in);
}

template <class Shape>
FUSELINE_DEVICE void consume(const BlockArgs& args, const Ring<Shape>& ring,
                             const BlockInstruction* list, int count, float* area) {
  RingPlace<Shape> place;
  int turn = 0, seen = -1;
  FUSELINE_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const BlockInstruction& in = list[i];
    u64* record = nullptr;
    if (args.record != 0)
      record = reinterpret_cast<u64*>(args.record) +
               3 * (static_cast<int>(blockIdx.x) * block_most_instructions + i);
    if (record != nullptr && threadIdx.x == 0) record[0] = nanoseconds();
    const auto step = static_cast<BlockStep>(in.step);
    if (is_product(in.step)) {
      run_product<Shape>(args, ring, place, in, area + turn * Shape::area_floats, seen, record);
      turn ^= 1;
    } else if (step == BlockStep::attend) {
      run_attend<Shape>(args, ring, place, in, area, record);
    } else if (step == BlockStep::join) {
      run_join<Shape>(args, in);
    } else {
      run_finish<Shape>(args, in);
    }
    if (record != nullptr && threadIdx.x == 0) record[2] = nanoseconds();
  }
}

// The last thread block to come here leaves the counters as it found them.
FUSELINE_DEVICE void leave_counters(const BlockArgs& args, volatile u32* last) {
  u32* counters = reinterpret_cast<u32*>(args.counters);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *last = atomicAdd(counters + args.counter_count, 1U) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (*last == 0) return;
  for (int c = static_cast<int>(threadIdx.x); c <= args.counter_count; c += block_threads)
    counters[c] = 0;
}

template <class Shape>
FUSELINE_DEVICE void decode_block(const BlockArgs& args) {
  extern __shared__ __align__(128) unsigned char shared[];
  // Stages, areas of sums, instructions, barriers.
  float* area = reinterpret_cast<float*>(shared + Shape::stages * Shape::stage_bytes);
  auto* list = reinterpret_cast<BlockInstruction*>(area + 2 * Shape::area_floats);
  const u32 barriers = shared_address(list + block_most_instructions);
  const Ring<Shape> ring{shared_address(shared), barriers};

  const int count = reinterpret_cast<const int*>(args.counts)[blockIdx.x];
  const auto* instructions = reinterpret_cast<const uint4*>(args.instructions) +
                             static_cast<int>(blockIdx.x) * block_most_instructions * 4;
  for (int w = static_cast<int>(threadIdx.x); w < 4 * count; w += block_threads)
    reinterpret_cast<uint4*>(list)[w] = instructions[w];
  if (threadIdx.x == 0) {
    for (int s = 0; s < Shape::stages; ++s) {
      mbarrier_init(ring.full(s), 2);
      mbarrier_init(ring.empty(s), block_consumers);
    }
    mbarrier_init_fence();
  }
  __syncthreads();

  const int warp = static_cast<int>(threadIdx.x / 32);
  if (warp < block_consumers)
    consume<Shape>(args, ring, list, count, area);
  else if (warp < block_consumers + block_loaders)
    load_weights<Shape>(args, ring, list, count, warp - block_consumers);
  else
    load_operands<Shape>(args, ring, list, count);
  leave_counters(
      args, reinterpret_cast<volatile u32*>(list + block_most_instructions) + 4 * Shape::stages);
}

}  // namespace fuseline::gpu
