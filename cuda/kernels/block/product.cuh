// An instruction of a product: up to 8 rows of the operand times up to 32 rows of weights. Tensor
// cores multiply 16 × 16 by 16 × 8; the operand's rows are the 16, of which 8 are zeros, since time
// is that of bringing the weights. Warps share the columns of a slice, and their sums are added in
// their order, so results are the same in every run.
#pragma once

#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "norm.cuh"
#include "ring.cuh"

namespace fuseline::gpu {

// The share of one warp in a slice of n columns: 32 of every 256. All matrices of a step are loaded
// ahead of its products. Rows that a tile does not have are products too, and nobody takes them.
template <class Shape>
FUSELINE_DEVICE void multiply_slice(float (&sums)[4][4], u32 stage, u32 operand, int n, int warp,
                                    int lane) {
  constexpr int tiles = block_tile_rows / 8;
  const int row = lane % 8, chunk = warp % 2 * 4 + lane / 8;  // of 16 bytes in a box's row
  const u32 a_at = operand + static_cast<u32>(min_of(row, Shape::batch - 1) * Shape::operand_pitch +
                                              lane / 8 * 16 + 64 * warp);
  const u32 w_at =
      stage + static_cast<u32>(warp / 2 * block_box_bytes + row * 128 + (chunk ^ row) * 16);
  FUSELINE_UNROLL
  for (int i = 0; i < block_slice_columns / (32 * block_consumers); ++i) {
    if (32 * (warp + block_consumers * i) >= n) break;
    u32 a[4], w[tiles][4];
    ldmatrix_x4(a, a_at + static_cast<u32>(64 * block_consumers * i));
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t)
      ldmatrix_x4(w[t],
                  w_at + static_cast<u32>(block_consumers / 2 * block_box_bytes * i + 8 * t * 128));
    const u32 low[4] = {a[0], 0, a[1], 0}, high[4] = {a[2], 0, a[3], 0};
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t) mma_16x8x16<bf16>(sums[t], low, w[t][0], w[t][1]);
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t) mma_16x8x16<bf16>(sums[t], high, w[t][2], w[t][3]);
  }
}

// Of row m of the result a warp has column `lane` of the tile: it ends the program.
template <class Shape>
struct ProductEnd {
  const BlockArgs& args;
  const BlockInstruction& in;
  int m, lane;
  float early;  // what residual() loaded
  float r;      // of the norm ahead of the product, where there is one

  [[nodiscard]] FUSELINE_DEVICE bool mine() const { return lane < in.count; }
  [[nodiscard]] FUSELINE_DEVICE int row() const { return in.begin + lane; }

  FUSELINE_DEVICE void qkv(float sum) const {
    const float value = sum * r;
    const int q = args.kv_heads * Shape::group * Shape::width, kv = args.kv_heads * Shape::width;
    const float other = __shfl_xor_sync(0xffffffffU, value, 1);
    if (!mine()) return;
    const long long key = static_cast<long long>(m + 1) * args.context - 1;
    if (row() >= q + kv) {
      writable(args.v, key)[row() - q - kv] = from_float<bf16>(value);
      return;
    }
    const int c = row() % Shape::width;
    const float cos = to_float(reinterpret_cast<const bf16*>(args.cos)[c]);
    const float sin = to_float(reinterpret_cast<const bf16*>(args.sin)[c]);
    const bf16 turned = from_float<bf16>(value * cos + (lane % 2 == 0 ? -other : other) * sin);
    if (row() < q)
      writable(args.q, m)[row()] = turned;
    else
      writable(args.k, key)[row() - q] = turned;
  }

  FUSELINE_DEVICE void gate_up(float sum) const {
    const float value = sum * r;
    const float up = __shfl_xor_sync(0xffffffffU, value, 1);
    if (mine() && lane % 2 == 0)
      writable(args.act, m)[row() / 2] = from_float<bf16>(value / (1 + __expf(-value)) * up);
  }

  // out and down: plus the residual, and sums of squares by groups of 128 columns.
  FUSELINE_DEVICE void with_residual(float sum, const BlockMatrix& to, u64 sums) const {
    const float value = mine() ? sum + early : 0.0F;
    if (mine()) writable(to, m)[row()] = from_float<bf16>(value);
    const int cut = 128 - in.begin % 128;
    float first = lane < cut ? value * value : 0.0F, second = lane < cut ? 0.0F : value * value;
    FUSELINE_UNROLL
    for (int step = 16; step > 0; step /= 2) {
      first += __shfl_xor_sync(0xffffffffU, first, step);
      second += __shfl_xor_sync(0xffffffffU, second, step);
    }
    float* slots = reinterpret_cast<float*>(sums) + in.slot * Shape::batch + m;
    if (lane == 0) slots[0] = first;
    if (lane == 1 && cut < in.count) slots[Shape::batch] = second;
  }
};

template <class Shape>
FUSELINE_DEVICE float residual(const BlockArgs& args, const BlockInstruction& in, int m, int lane) {
  const auto step = static_cast<BlockStep>(in.step);
  const bool there = step == BlockStep::out || step == BlockStep::down;
  if (!there || m >= Shape::batch || lane >= in.count) return 0;
  const bf16* from = elements(step == BlockStep::out ? args.x : args.h, m) + in.begin + lane;
  const unsigned short bits = __ldcg(reinterpret_cast<const unsigned short*>(from));
  return __uint_as_float(static_cast<u32>(bits) << 16);
}

template <class Shape>
FUSELINE_DEVICE void run_product(const BlockArgs& args, const BlockCounters& counters,
                                 const Ring<Shape>& ring, RingPlace<Shape>& place,
                                 const BlockInstruction& in, float* area, NormFactors& norms,
                                 u64* record) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int columns = product_columns<Shape>(args, in.step);
  const auto step = static_cast<BlockStep>(in.step);
  const bool sums_of_norm = warp < Shape::batch && norms.missing(step);
  float sums[4][4] = {};
  float early = 0;
  NormSums norm;
  FUSELINE_NO_UNROLL
  for (int at = 0; at < columns; at += block_slice_columns) {
    mbarrier_wait(ring.full(place.stage), place.phase);
    if (at == 0) {
      // Behind the first slice, whose counters say that the residual is there too.
      early = residual<Shape>(args, in, warp, lane);
      if (record != nullptr && threadIdx.x == 0) record[1] = nanoseconds();
    }
    // Behind the last slice: all columns are there, and so are the sums of their squares.
    if (sums_of_norm && at + block_slice_columns >= columns)
      norm.load<Shape>(args, step, warp, lane);
    multiply_slice<Shape>(sums, ring.stage(place.stage), ring.operand(place.stage),
                          min_of(block_slice_columns, columns - at), warp, lane);
    __syncwarp();
    if (lane == 0) mbarrier_arrive(ring.empty(place.stage));
    place.advance();
  }

  const int row = lane / 4;
  if (row < Shape::batch) {
    float* to = area + (warp * 8 + row) * Shape::sum_pitch + lane % 4 * 2;
    FUSELINE_UNROLL
    for (int t = 0; t < block_tile_rows / 8; ++t)
      *reinterpret_cast<float2*>(to + 8 * t) = make_float2(sums[t][0], sums[t][1]);
  }
  if (sums_of_norm) norms.set(step, norm.factor(args, step));
  named_barrier(1, 32 * block_consumers);
  if (warp >= Shape::batch) return;

  float sum = 0;
  FUSELINE_UNROLL
  for (int w = 0; w < block_consumers; ++w) sum += area[(w * 8 + warp) * Shape::sum_pitch + lane];
  const ProductEnd<Shape> end{args, in, warp, lane, early, norms.of(step)};
  if (step == BlockStep::qkv) end.qkv(sum);
  if (step == BlockStep::gate_up) end.gate_up(sum);
  if (step == BlockStep::out) end.with_residual(sum, args.h, args.h_sums);
  if (step == BlockStep::down) end.with_residual(sum, args.y, args.y_sums);
  __syncwarp();
  if (lane == 0) counters.add(in);
}

}  // namespace fuseline::gpu
