// A decode block in one launch: one thread block an SM interprets that SM's instructions
// (model/instructions/instructions.h). Two warps load, eight consume; README.md of this folder.
#pragma once

#include "attend.cuh"
#include "norm.cuh"
#include "product.cuh"
#include "ring.cuh"

namespace fuseline::gpu {

template <class Shape>
FUSELINE_DEVICE void consume(const BlockArgs& args, const BlockCounters& counters,
                             const Ring<Shape>& ring, const BlockInstruction* list, int count,
                             float* area) {
  RingPlace<Shape> place;
  NormFactors norms;
  int turn = 0;
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
      run_product<Shape>(args, counters, ring, place, in, area + turn * Shape::area_floats, norms,
                         record);
      turn ^= 1;
    } else if (step == BlockStep::attend) {
      run_attend<Shape>(args, counters, ring, place, in, area, record);
    } else if (step == BlockStep::join) {
      run_join<Shape>(args, counters, in);
    } else {
      run_finish<Shape>(args, counters, in);
    }
    if (record != nullptr && threadIdx.x == 0) record[2] = nanoseconds();
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
      reinterpret_cast<volatile u32*>(list + block_most_instructions) + 4 * Shape::stages;
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
  if (thread == 0) {
    for (int s = 0; s < Shape::stages; ++s) {
      mbarrier_init(ring.full(s), 2);
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
    consume<Shape>(args, counters, ring, list, count, area);
  } else if (warp == block_consumers) {
    load_weights<Shape>(args, ring, list, count);
  } else {
    load_operands<Shape>(args, counters, ring, list, count);
  }
}

}  // namespace fuseline::gpu
