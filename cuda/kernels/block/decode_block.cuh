// A decode block in one launch: one thread block an SM interprets that SM's instructions
// (model/instructions/instructions.h). Two warps load, eight consume, two finish; README.md of this
// folder.
#pragma once

#include "../launch_order.cuh"
#include "attend.cuh"
#include "norm.cuh"
#include "product.cuh"
#include "ring.cuh"

namespace fuseline::gpu {

// Begin, first data and end of an instruction; null: nobody wants to know.
FUSELINE_DEVICE u64* record_of(const BlockArgs& args, int i) {
  if (args.record == 0) return nullptr;
  return reinterpret_cast<u64*>(args.record) +
         3 * (static_cast<int>(blockIdx.x) * block_most_instructions + i);
}
FUSELINE_DEVICE bool is_finish(int step) {
  const auto s = static_cast<BlockStep>(step);
  return s == BlockStep::finish_norm1 || s == BlockStep::finish_norm2 ||
         s == BlockStep::finish_stats;
}

template <class Shape>
FUSELINE_DEVICE void consume(const BlockArgs& args, const BlockCounters& counters,
                             const Ring<Shape>& ring, const BlockInstruction* list, int count,
                             SumAreas<Shape> areas) {
  RingPlace<Shape> place;
  FUSELINE_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const BlockInstruction& in = list[i];
    if (is_finish(in.step)) continue;
    u64* record = threadIdx.x == 0 ? record_of(args, i) : nullptr;
    if (record != nullptr) record[0] = nanoseconds();
    if (is_product(in.step)) {
      run_product<Shape>(args, ring, place, in, areas, record);
      continue;
    }
    if (static_cast<BlockStep>(in.step) == BlockStep::attend)
      run_attend<Shape>(args, counters, ring, place, in, areas, record);
    else
      run_join<Shape>(args, counters, in);
    if (record != nullptr) record[2] = nanoseconds();
  }
}

template <class Shape>
FUSELINE_DEVICE void finish(const BlockArgs& args, const BlockCounters& counters,
                            const BlockInstruction* list, int count, SumAreas<Shape> areas,
                            int finisher) {
  NormFactors<Shape> norms;
  FUSELINE_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const BlockInstruction& in = list[i];
    u64* record = finisher == 0 && threadIdx.x % 32 == 0 ? record_of(args, i) : nullptr;
    if (is_product(in.step))
      finish_product<Shape>(args, counters, in, areas, norms, finisher, record);
    if (!is_finish(in.step)) continue;
    if (record != nullptr) record[0] = nanoseconds();
    run_finish<Shape>(args, counters, in, finisher);
    if (record != nullptr) record[2] = nanoseconds();
  }
}

// Which of the two sets of counters this launch has. Thread blocks of a launch all begin before one
// of the next does, so their number says it.
FUSELINE_DEVICE u32 set_of_launch(const BlockArgs& args) {
  return atomicInc(reinterpret_cast<u32*>(args.begun), 2 * gridDim.x - 1) / gridDim.x;
}

// By the consumers: the other set, for the next launch. The launch before is over, so that nobody
// uses it now.
FUSELINE_DEVICE void make_ready(const BlockArgs& args, u32 set) {
  int* counters =
      reinterpret_cast<int*>(args.counters) + (1 - static_cast<int>(set)) * args.counter_count;
  const int* goals = reinterpret_cast<const int*>(args.goals);
  constexpr int consumers = 32 * block_consumers;
  for (int c = static_cast<int>(blockIdx.x) * consumers + static_cast<int>(threadIdx.x);
       c < args.counter_count; c += static_cast<int>(gridDim.x) * consumers)
    counters[c] = -__ldg(goals + c);
}

template <class Shape>
FUSELINE_DEVICE void decode_block(const BlockArgs& args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  // Stages, operands, areas of sums, instructions, barriers, the set of counters.
  float* area = reinterpret_cast<float*>(shared + Shape::stages *
                                                      (Shape::stage_bytes + Shape::operand_bytes));
  auto* list = reinterpret_cast<BlockInstruction*>(area + 2 * Shape::area_floats);
  const u32 barriers = shared_address(list + block_most_instructions);
  volatile u32* set_here =
      reinterpret_cast<volatile u32*>(list + block_most_instructions) + 6 * Shape::stages;
  const Ring<Shape> ring{shared_address(shared), barriers};

  // All that is needed from memory at once: its latency is the launch's.
  const int thread = static_cast<int>(threadIdx.x);
  constexpr int words = 4 * block_most_instructions;
  static_assert(words <= block_threads);
  uint4 word{};
  if (thread < words)
    word = __ldg(reinterpret_cast<const uint4*>(args.instructions) +
                 static_cast<int>(blockIdx.x) * words + thread);
  const int count = __ldg(reinterpret_cast<const int*>(args.counts) + blockIdx.x);
  if (thread == block_threads - 1) *set_here = set_of_launch(args);
  if (thread == block_threads - 32) prefetch_maps(args);
  if (thread == 0) {
    for (int s = 0; s < Shape::stages; ++s) {
      mbarrier_init(ring.boxes_full(s), 1);
      mbarrier_init(ring.operand_full(s), 1);
      mbarrier_init(ring.empty(s), block_consumers);
    }
    mbarrier_init_fence();
  }
  if (thread < words) reinterpret_cast<uint4*>(list)[thread] = word;
  __syncthreads();

  const u32 set = *set_here;
  const BlockCounters counters(args, set);
  const int warp = thread / 32;
  if (warp < block_consumers) {
    make_ready(args, set);
    consume<Shape>(args, counters, ring, list, count, SumAreas<Shape>{area});
  } else if (warp < block_consumers + block_finishers) {
    finish<Shape>(args, counters, list, count, SumAreas<Shape>{area}, warp - block_consumers);
  } else if (warp == block_consumers + block_finishers) {
    load_weights<Shape>(args, ring, list, count);
  } else {
    load_operands<Shape>(args, counters, ring, list, count);
  }
}

}  // namespace fuseline::gpu
