// Norms. Every SM computes their factors itself, where its first product behind the norm needs
// them: the sums are few numbers, and a counter from an SM that computes them for all costs two
// ways through L2 more. Warp m has row m.
#pragma once

#include "ring.cuh"

namespace fuseline::gpu {

// A warp's loads of one row's sums of squares, first asked for and added later. They are added in
// the same order wherever the factor is computed.
struct NormSums {
  static constexpr int at_once = 8;  // of a lane
  float first[at_once];
  const float* from = nullptr;
  int pitch = 0, count = 0;  // floats from sum to sum; sums

  template <class Shape>
  FUSELINE_DEVICE void load(const BlockArgs& args, BlockStep step, int m, int lane) {
    const bool entry = step == BlockStep::qkv || step == BlockStep::finish_norm1;
    from = entry ? floats(args.x_stats, m) : reinterpret_cast<const float*>(args.h_sums) + m;
    pitch = entry ? 1 : Shape::batch;
    count = entry ? args.sums_groups : args.sums;
    FUSELINE_UNROLL
    for (int i = 0; i < at_once; ++i)
      first[i] = lane + 32 * i < count ? __ldcg(from + (lane + 32 * i) * pitch) : 0.0F;
  }
  // 1 / sqrt(mean of squares + eps).
  FUSELINE_DEVICE float factor(const BlockArgs& args, BlockStep step) const {
    const bool entry = step == BlockStep::qkv || step == BlockStep::finish_norm1;
    float total = 0;
    FUSELINE_UNROLL
    for (int i = 0; i < at_once; ++i) total += first[i];
    FUSELINE_NO_UNROLL
    for (int s = static_cast<int>(threadIdx.x % 32) + 32 * at_once; s < count; s += 32)
      total += __ldcg(from + s * pitch);
    FUSELINE_UNROLL
    for (int lanes = 16; lanes > 0; lanes /= 2) total += __shfl_xor_sync(0xffffffffU, total, lanes);
    return 1 / sqrtf(total / static_cast<float>(args.model) + (entry ? args.eps1 : args.eps2));
  }
};

// Of a warp's row, once known.
struct NormFactors {
  float first = 0, second = 0;  // no factor is 0

  [[nodiscard]] FUSELINE_DEVICE bool missing(BlockStep step) const {
    return (step == BlockStep::qkv && first == 0) || (step == BlockStep::gate_up && second == 0);
  }
  [[nodiscard]] FUSELINE_DEVICE float of(BlockStep step) const {
    return step == BlockStep::qkv ? first : second;
  }
  FUSELINE_DEVICE void set(BlockStep step, float factor) {
    if (step == BlockStep::qkv) first = factor;
    if (step == BlockStep::gate_up) second = factor;
  }
};

// What the plan keeps in memory: a norm's factor, and sums of squares by groups of columns.
template <class Shape>
FUSELINE_DEVICE void run_finish(const BlockArgs& args, const BlockCounters& counters,
                                const BlockInstruction& in) {
  const int m = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  if (m >= Shape::batch) return;
  if (in.operand_count > 0) counters.wait_for_all(in.operand_first, in.operand_count);
  const auto step = static_cast<BlockStep>(in.step);
  const bool first = step == BlockStep::finish_norm1, second = step == BlockStep::finish_norm2;
  if (first || second) {
    NormSums norm;
    norm.load<Shape>(args, step, m, lane);
    const float factor = norm.factor(args, step);
    if (lane == 0) floats(first ? args.r1 : args.r2, m)[0] = factor;
  }
  if (first) return;
  const float* sums = reinterpret_cast<const float*>(second ? args.h_sums : args.y_sums) + m;
  const int* first_sum = reinterpret_cast<const int*>(args.first_sum);
  float* stats = floats(second ? args.h_stats : args.y_stats, m);
  FUSELINE_NO_UNROLL
  for (int g = lane; g < args.sums_groups; g += 32) {
    const int begin = __ldg(first_sum + g), behind = __ldg(first_sum + g + 1);
    float part = 0;
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
}

}  // namespace fuseline::gpu
