// What an epilogue sees of a strip of 32 columns of up to 8 rows (codes_columns.cuh). Sums along
// rows go over 128 columns, of which a strip has a quarter: four warps, of one thread block or of
// several, leave theirs in global memory, and the last one to come joins them in their order.
#pragma once

#include "../sm80/tile_io.cuh"

namespace fuseline::gpu {

constexpr int strip_columns = 32, strips_of_sum = 4;
constexpr int most_rows_of_strip = 8;

// The workspace of sums along rows, for each number that they leave and every 128 columns of the
// result: four times eight numbers, and a counter, zero before the first launch and after each one.
struct StripSums {
  float* sums;
  u32* counters;
};

// What shared memory and registers of Slab80 ask.
struct StripShape {
  static constexpr int tile_rows = 16, tile_threads = 32, strips_per_warp = 1;
  static constexpr int slab_groups = strip_columns / 8, scratch_step = 0;
  static constexpr bool batched = false;
};

struct ColumnsStrip : Slab80<StripShape, 0> {
  // One of those who have a part of a sum along rows, as far as epilogue/reduce.cuh is concerned.
  static constexpr int tile_cols = 64;
  StripSums all;

  FUSELINE_DEVICE ColumnsStrip(const SlabPlace& place, u32 stage, const StripSums& a)
      : Slab80<StripShape, 0>{place, stage, 0, 0, static_cast<int>(threadIdx.x), stage, 1},
        all(a) {}

  // Every strip ends its part.
  static FUSELINE_DEVICE int number() { return 1; }

  // The sum of a row over 128 columns. Says whether this warp has it.
  template <class Op>
  FUSELINE_DEVICE bool join_halves(float (&v)[2], int number) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const int block = col / (strip_columns * strips_of_sum);
    const int place = number * ceil_div(cols, strip_columns * strips_of_sum) + block;
    const int part = col / strip_columns % strips_of_sum;
    // Of the last 128 columns some strips may not exist.
    const int parts = min_of(
        strips_of_sum, ceil_div(cols - block * (strip_columns * strips_of_sum), strip_columns));
    float* const sums = all.sums + place * (strips_of_sum * most_rows_of_strip) + lane / 4;
    const bool mine = lane % 4 == 0 && lane / 4 < rows;
    if (mine) __stcg(sums + part * most_rows_of_strip, v[0]);
    __threadfence();
    __syncwarp();
    u32 before = 0;
    if (lane == 0) before = atomicAdd(all.counters + place, 1U);
    before = __shfl_sync(0xffffffffU, before, 0);
    if (before + 1 != static_cast<u32>(parts)) return false;
    __threadfence();
    if (lane == 0) all.counters[place] = 0;
    if (mine) {
      float of_part[strips_of_sum];
#pragma unroll
      for (int i = 0; i < strips_of_sum; ++i)  // not from L1, which may have an older launch's
        of_part[i] = i < parts ? __ldcg(sums + i * most_rows_of_strip) : Op::start;
      v[0] = of_part[0];
#pragma unroll
      for (int i = 1; i < strips_of_sum; ++i) v[0] = Op::join(v[0], of_part[i]);
    }
    return true;
  }
};

}  // namespace fuseline::gpu
