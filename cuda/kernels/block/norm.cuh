// Norms. Every SM computes their factors itself, where its first product behind the norm needs
// them: the sums are few numbers, and a counter from an SM that computes them for all costs two
// ways through L2 more. Warp m has row m.
#pragma once

#include "ring.cuh"

namespace fuseline::gpu {

// A warp's loads of one row's sums of squares, first asked for and added later. They are added in
// the same order wherever the factor is computed.
struct NormSums {
  static constexpr int at_once = 10;  // of a lane: all sums of up to 320, as most blocks have
  float first[at_once];
  const float* from = nullptr;
  int count = 0;

  template <class Shape>
  FUSELINE_DEVICE void load(const BlockArgs& args, BlockStep step, int m, int lane) {
    const bool entry = step == BlockStep::qkv || step == BlockStep::finish_norm1;
    from = entry ? floats(args.x_stats, m)
                 : reinterpret_cast<const float*>(args.h_sums) + m * args.sums;
    count = entry ? args.sums_groups : args.sums;
    FUSELINE_UNROLL
    for (int i = 0; i < at_once; ++i)
      first[i] = lane + 32 * i < count ? __ldcg(from + lane + 32 * i) : 0.0F;
  }
  // 1 / sqrt(mean of squares + eps).
  FUSELINE_DEVICE float factor(const BlockArgs& args, BlockStep step) const {
    const bool entry = step == BlockStep::qkv || step == BlockStep::finish_norm1;
    float total = 0;
    FUSELINE_UNROLL
    for (int i = 0; i < at_once; ++i) total += first[i];
    FUSELINE_NO_UNROLL
    for (int s = static_cast<int>(threadIdx.x % 32) + 32 * at_once; s < count; s += 32)
      total += __ldcg(from + s);
    FUSELINE_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(0xffffffffU, total, lanes);
    return 1 / sqrtf(total / static_cast<float>(args.model) + (entry ? args.eps1 : args.eps2));
  }
};

FUSELINE_DEVICE int row_of_finisher(int finisher, int i) { return finisher + i * block_finishers; }

// Of a finisher's rows, once known.
template <class Shape>
struct NormFactors {
  static constexpr int rows = Shape::finisher_rows;
  float first[rows] = {}, second[rows] = {};
  bool know_first = false, know_second = false;

  // What the product needs. Sums of squares of h are there when all counters of h are complete.
  FUSELINE_DEVICE void know(const BlockArgs& args, const BlockCounters& counters,
                            const BlockInstruction& in, int finisher) {
    const auto step = static_cast<BlockStep>(in.step);
    if (step == BlockStep::qkv && !know_first) {
      compute(first, args, step, finisher);
      know_first = true;
    }
    if (step == BlockStep::gate_up && !know_second) {
      counters.wait_for_all(in.operand_first, in.operand_count);
      compute(second, args, step, finisher);
      know_second = true;
    }
  }
  [[nodiscard]] FUSELINE_DEVICE float of(BlockStep step, int i) const {
    return step == BlockStep::qkv ? first[i] : second[i];
  }

  static FUSELINE_DEVICE void compute(float (&factors)[rows], const BlockArgs& args, BlockStep step,
                                      int finisher) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    NormSums sums[rows];
    FUSELINE_UNROLL
    for (int i = 0; i < rows; ++i)
      if (const int m = row_of_finisher(finisher, i); m < Shape::batch)
        sums[i].template load<Shape>(args, step, m, lane);
    FUSELINE_UNROLL
    for (int i = 0; i < rows; ++i)
      if (row_of_finisher(finisher, i) < Shape::batch) factors[i] = sums[i].factor(args, step);
  }
};

// Sums of squares of a finisher's rows of h, or of y, by groups of columns. The rows' loads are
// under way together: one row after the other, the last SM of a block waits for L2 as often as it
// has rows, and the next launch waits for it.
template <class Shape>
FUSELINE_DEVICE void store_stats(const BlockArgs& args, bool second, int finisher, int lane) {
  constexpr int rows = Shape::finisher_rows;
  const float* sums = reinterpret_cast<const float*>(second ? args.h_sums : args.y_sums);
  const int* first_sum = reinterpret_cast<const int*>(args.first_sum);
  FUSELINE_NO_UNROLL
  for (int g = lane; g < args.sums_groups; g += 32) {
    const int begin = __ldg(first_sum + g), behind = __ldg(first_sum + g + 1);
    float part[rows] = {};
    // As many loads at once as most groups have sums.
    constexpr int at_once = 8;
    FUSELINE_NO_UNROLL
    for (int s = begin; s < behind; s += at_once) {
      float several[rows][at_once];
      FUSELINE_UNROLL
      for (int r = 0; r < rows; ++r) {
        const int m = row_of_finisher(finisher, r);
        FUSELINE_UNROLL
        for (int i = 0; i < at_once; ++i)
          several[r][i] =
              m < Shape::batch && s + i < behind ? __ldcg(sums + m * args.sums + s + i) : 0.0F;
      }
      FUSELINE_UNROLL
      for (int r = 0; r < rows; ++r) FUSELINE_UNROLL
      for (int i = 0; i < at_once; ++i) part[r] += several[r][i];
    }
    FUSELINE_UNROLL
    for (int r = 0; r < rows; ++r)
      if (const int m = row_of_finisher(finisher, r); m < Shape::batch)
        floats(second ? args.h_stats : args.y_stats, m)[g] = part[r];
  }
}

// What the plan keeps in memory, by the finishers: a norm's factors, and sums of squares by groups
// of columns.
template <class Shape>
FUSELINE_DEVICE void run_finish(const BlockArgs& args, const BlockCounters& counters,
                                const BlockInstruction& in, int finisher) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (in.operand_count > 0) counters.wait_for_all(in.operand_first, in.operand_count);
  const auto step = static_cast<BlockStep>(in.step);
  const bool first = step == BlockStep::finish_norm1, second = step == BlockStep::finish_norm2;
  if (first || second) {
    float factors[Shape::finisher_rows] = {};
    NormFactors<Shape>::compute(factors, args, step, finisher);
    FUSELINE_UNROLL
    for (int i = 0; i < Shape::finisher_rows; ++i)
      if (const int m = row_of_finisher(finisher, i); m < Shape::batch && lane == 0)
        floats(first ? args.r1 : args.r2, m)[0] = factors[i];
  }
  if (first) return;
  store_stats<Shape>(args, second, finisher, lane);
}

}  // namespace fuseline::gpu
