// An instruction of a product: up to 8 rows of the operand times up to 32 rows of weights. Tensor
// cores multiply 16 × 16 by 16 × 8; the operand's rows are the 16, of which 8 are zeros, since time
// is that of bringing the weights. Consumers share the columns of a slice and leave their sums in
// shared memory. Finishers add these in the order of the warps, so that results are the same in
// every run, and end the program: it is a chain of latencies, beside which consumers go on.
#pragma once

#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "norm.cuh"
#include "ring.cuh"

namespace fuseline::gpu {

// The share of one warp in a slice of n columns: 32 of every 256. All matrices of a step are loaded
// ahead of its products. Rows that a tile does not have are products too, and nobody takes them.
template <class Shape>
FUSELINE_DEVICE void multiply_slice(float (&sums)[4][4], u32 stage, u32 operand, int box_rows,
                                    int n, int warp, int lane) {
  constexpr int tiles = block_tile_rows / 8;
  const int row = lane % 8, chunk = warp % 2 * 4 + lane / 8;  // of 16 bytes in a box's row
  FUSELINE_UNROLL
  for (int i = 0; i < block_slice_columns / (32 * block_consumers); ++i) {
    if (32 * (warp + block_consumers * i) >= n) break;
    const int group = warp / 2 + block_consumers / 2 * i;
    u32 a[4], w[tiles][4];
    ldmatrix_x4(a,
                operand + slice_place(Shape::batch, group, min_of(row, Shape::batch - 1), chunk));
    const u32 w_at = stage + slice_place(box_rows, group, row, chunk);
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t) ldmatrix_x4(w[t], w_at + static_cast<u32>(8 * t * 128));
    const u32 low[4] = {a[0], 0, a[1], 0}, high[4] = {a[2], 0, a[3], 0};
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t) mma_16x8x16<bf16>(sums[t], low, w[t][0], w[t][1]);
    FUSELINE_UNROLL
    for (int t = 0; t < tiles; ++t) mma_16x8x16<bf16>(sums[t], high, w[t][2], w[t][3]);
  }
}

// Two areas of partial sums take turns. Named barriers 2 and 3 say that an area is full, 4 and 5
// that the finishers have read it.
template <class Shape>
struct SumAreas {
  static constexpr int threads = 32 * (block_consumers + block_finishers);
  float* first;
  int turn = 0;
  u32 unread = 0;  // areas that are not known to be read, a bit each: of consumers

  [[nodiscard]] FUSELINE_DEVICE float* area() const { return first + turn * Shape::area_floats; }
  FUSELINE_DEVICE void advance() { turn ^= 1; }

  // Consumers.
  FUSELINE_DEVICE float* take() {
    wait_until_read(turn);
    return area();
  }
  FUSELINE_DEVICE float* take_all() {
    wait_until_read(0);
    wait_until_read(1);
    return first;
  }
  FUSELINE_DEVICE void give() {
    named_barrier_arrive(2 + turn, threads);
    unread |= 1U << turn;
    advance();
  }
  // Finishers.
  FUSELINE_DEVICE void wait_until_full() const { named_barrier(2 + turn, threads); }
  FUSELINE_DEVICE void give_back() {
    named_barrier_arrive(4 + turn, threads);
    advance();
  }

 private:
  FUSELINE_DEVICE void wait_until_read(int which) {
    if ((unread >> which & 1) != 0) named_barrier(4 + which, threads);
    unread &= ~(1U << which);
  }
};

// Of every row m of a finisher its lane has column `lane` of the tile: it ends the program. A
// step's rows end together, so that the exchanges between lanes of one row pass beside those of the
// others.
template <class Shape>
struct ProductEnd {
  static constexpr int rows = Shape::finisher_rows;
  const BlockArgs& args;
  const BlockInstruction& in;
  int finisher, lane;

  struct Early {  // loaded ahead of the sums: cos and sin, or the residual
    float first = 0, second = 0;
  };

  [[nodiscard]] FUSELINE_DEVICE Early early(int m) const {
    const auto step = static_cast<BlockStep>(in.step);
    Early e;
    if (step == BlockStep::qkv) {
      const int c = row() % Shape::width;
      e.first = to_float(reinterpret_cast<const bf16*>(args.cos)[c]);
      e.second = to_float(reinterpret_cast<const bf16*>(args.sin)[c]);
    }
    // This very thread stored h's element: `out` and `down` have the same tiles.
    if ((step == BlockStep::out || step == BlockStep::down) && mine()) {
      const bf16* from = elements(step == BlockStep::out ? args.x : args.h, m) + row();
      const unsigned short bits = __ldcg(reinterpret_cast<const unsigned short*>(from));
      e.first = __uint_as_float(static_cast<u32>(bits) << 16);
    }
    return e;
  }
  FUSELINE_DEVICE void end(const float (&sums)[rows], const NormFactors<Shape>& norms,
                           const Early (&early)[rows]) const {
    const auto step = static_cast<BlockStep>(in.step);
    if (step == BlockStep::qkv || step == BlockStep::gate_up) {
      float values[rows] = {}, others[rows] = {};  // of a pair of columns
      for_rows([&](int i, int) { values[i] = sums[i] * norms.of(step, i); });
      for_rows([&](int i, int) { others[i] = __shfl_xor_sync(0xffffffffU, values[i], 1); });
      if (mine() && step == BlockStep::qkv) qkv(values, others, early);
      if (mine() && step == BlockStep::gate_up && lane % 2 == 0) gate_up(values, others);
    }
    if (step == BlockStep::out) with_residual(sums, early, args.h, args.h_sums);
    if (step == BlockStep::down) with_residual(sums, early, args.y, args.y_sums);
  }
  template <class F>
  FUSELINE_DEVICE void for_rows(const F& f) const {
    FUSELINE_UNROLL
    for (int i = 0; i < rows; ++i)
      if (const int m = row_of_finisher(finisher, i); m < Shape::batch) f(i, m);
  }

 private:
  [[nodiscard]] FUSELINE_DEVICE bool mine() const { return lane < in.count; }
  [[nodiscard]] FUSELINE_DEVICE int row() const { return in.begin + lane; }

  // Pairs of columns of queries and keys are rotated, values are stored as they are.
  FUSELINE_DEVICE void qkv(const float (&values)[rows], const float (&others)[rows],
                           const Early (&early)[rows]) const {
    const int kv = args.kv_heads * Shape::width, q = kv * Shape::group;
    for_rows([&](int i, int m) {
      const long long key = static_cast<long long>(m + 1) * args.context - 1;
      if (row() >= q + kv) {
        writable(args.v, key)[row() - q - kv] = from_float<bf16>(values[i]);
        return;
      }
      const bf16 turned = from_float<bf16>(
          values[i] * early[i].first + (lane % 2 == 0 ? -others[i] : others[i]) * early[i].second);
      if (row() < q)
        writable(args.q, m)[row()] = turned;
      else
        writable(args.k, key)[row() - q] = turned;
    });
  }

  // Even columns are gates, the next ones their ups.
  FUSELINE_DEVICE void gate_up(const float (&gates)[rows], const float (&ups)[rows]) const {
    for_rows([&](int i, int m) {
      writable(args.act, m)[row() / 2] =
          from_float<bf16>(gates[i] / (1 + __expf(-gates[i])) * ups[i]);
    });
  }

  // out and down: plus the residual, and sums of squares by groups of 128 columns.
  FUSELINE_DEVICE void with_residual(const float (&sums)[rows], const Early (&early)[rows],
                                     const BlockMatrix& to, u64 squares) const {
    const int cut = 128 - in.begin % 128;
    float first[rows] = {}, second[rows] = {};
    for_rows([&](int i, int m) {
      const float value = mine() ? sums[i] + early[i].first : 0.0F;
      if (mine()) writable(to, m)[row()] = from_float<bf16>(value);
      first[i] = lane < cut ? value * value : 0.0F;
      second[i] = lane < cut ? 0.0F : value * value;
    });
    FUSELINE_UNROLL
    for (int step = 16; step > 0; step /= 2)
      for_rows([&](int i, int) {
        first[i] += __shfl_xor_sync(0xffffffffU, first[i], step);
        second[i] += __shfl_xor_sync(0xffffffffU, second[i], step);
      });
    for_rows([&](int i, int m) {
      float* slots = reinterpret_cast<float*>(squares) + m * args.sums + in.slot;
      if (lane == 0) slots[0] = first[i];
      if (lane == 1 && cut < in.count) slots[1] = second[i];
    });
  }
};

// By the consumers.
template <class Shape>
FUSELINE_DEVICE void run_product(const BlockArgs& args, const Ring<Shape>& ring,
                                 RingPlace<Shape>& place, const BlockInstruction& in,
                                 SumAreas<Shape>& areas, u64* record) {
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int columns = product_columns<Shape>(args, in.step);
  float sums[4][4] = {};
  FUSELINE_NO_UNROLL
  for (int at = 0; at < columns; at += block_slice_columns) {
    ring.wait_until_full(place.stage, place.phase);
    if (at == 0 && record != nullptr) record[1] = nanoseconds();
    multiply_slice<Shape>(sums, ring.stage(place.stage), ring.operand(place.stage), in.box_rows,
                          min_of(block_slice_columns, columns - at), warp, lane);
    __syncwarp();
    if (lane == 0) mbarrier_arrive(ring.empty(place.stage));
    place.advance();
  }
  float* area = areas.take();
  const int row = lane / 4;
  if (row < Shape::batch) {
    float* to = area + (warp * 8 + row) * Shape::sum_pitch + lane % 4 * 2;
    FUSELINE_UNROLL
    for (int t = 0; t < block_tile_rows / 8; ++t)
      *reinterpret_cast<float2*>(to + 8 * t) = make_float2(sums[t][0], sums[t][1]);
  }
  areas.give();
}

// By the finishers: finisher f has rows f, f + block_finishers, ...
template <class Shape>
FUSELINE_DEVICE void finish_product(const BlockArgs& args, const BlockCounters& counters,
                                    const BlockInstruction& in, SumAreas<Shape>& areas,
                                    NormFactors<Shape>& norms, int finisher, u64* record) {
  constexpr int rows = Shape::finisher_rows;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const ProductEnd<Shape> program{args, in, finisher, lane};
  typename ProductEnd<Shape>::Early early[rows];
  int ended = 0;
  program.for_rows([&](int i, int m) {
    early[i] = program.early(m);
    ++ended;
  });
  norms.know(args, counters, in, finisher);
  areas.wait_until_full();
  float sums[rows] = {};
  program.for_rows([&](int i, int m) {
    FUSELINE_UNROLL
    for (int w = 0; w < block_consumers; ++w)
      sums[i] += areas.area()[(w * 8 + m) * Shape::sum_pitch + lane];
  });
  areas.give_back();
  program.end(sums, norms, early);
  __syncwarp();
  if (lane == 0 && ended > 0) {
    counters.add(in, ended);
    if (record != nullptr) record[2] = nanoseconds();
  }
}

}  // namespace fuseline::gpu
