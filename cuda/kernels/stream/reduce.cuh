// Reductions of streams: whole rows (row mainloop), blocks of 128 columns of a row (stream), whole
// columns or 128 rows of them (column mainloop). Sums have a fixed order: results do not change
// from run to run.
#pragma once

#include "../epilogue/map.cuh"
#include "../epilogue/reduce.cuh"
#include "memory.cuh"

namespace fuseline::gpu::stream {

// Over `lanes` neighbouring lanes (a power of two, at most 32); each gets the result.
template <class Op, int lanes>
FUSELINE_DEVICE float join_lanes(float x) {
#pragma unroll
  for (int apart = lanes / 2; apart > 0; apart /= 2)
    x = Op::join(x, __shfl_xor_sync(0xffffffffU, x, apart));
  return x;
}

// What Op makes of every `group` columns, which neighbouring lanes hold, at each of them.
template <class Op, int group, int units>
FUSELINE_DEVICE Strip<units> reduce_lanes(const Strip<units>& x) {
  Strip<units> out;
#pragma unroll
  for (int u = 0; u < units; ++u) {
    float sum = Op::start;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) sum = Op::join(sum, Op::term(x.v[u][e]));
    sum = join_lanes<Op, group / vector_cols>(sum);
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) out.v[u][e] = sum;
  }
  return out;
}

// What a thread has of a row's reduction.
template <class Op>
struct RowTotal {
  float v = Op::start;
};
// `whole`: columns are a multiple of 8, so that a unit is in the row or is not.
template <bool whole = false, class Op, int units>
FUSELINE_DEVICE void gather_row(RowTotal<Op>& total, const Strip<units>& x,
                                const WholeRow<units>& place) {
  for_each<Strip<units>>([&](int u, int e) {
    if (place.col(u) + (whole ? 0 : e) < place.cols)
      total.v = Op::join(total.v, Op::term(x.at(u, e)));
  });
}
// Over the `threads` threads of a row: lanes of a warp, or the thread block.
template <int threads, class Op>
FUSELINE_DEVICE PerRow<1> row_result(const RowTotal<Op>& total) {
  float sum = join_lanes<Op, min_of(threads, 32)>(total.v);
  if constexpr (threads > 32) {
    __shared__ float parts[threads / 32];
    __syncthreads();  // the reduction before has been read
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = parts[0];
#pragma unroll
    for (int warp = 1; warp < threads / 32; ++warp) sum = Op::join(sum, parts[warp]);
  }
  return {{sum}};
}

// A whole row that its threads hold.
template <class Op, int threads, bool whole = false, int units>
FUSELINE_DEVICE PerRow<1> row_reduce(const Strip<units>& x, const WholeRow<units>& place) {
  RowTotal<Op> total;
  gather_row<whole>(total, x, place);
  return row_result<threads>(total);
}
template <class Place>
FUSELINE_DEVICE PerRow<1> divided_by_cols(const PerRow<1>& sum, const Place& place) {
  return {{sum.v[0] / static_cast<float>(place.cols)}};
}
template <int threads, bool whole = false, int units>
FUSELINE_DEVICE PerRow<1> row_mean(const Strip<units>& x, const WholeRow<units>& place) {
  return divided_by_cols(row_reduce<Sum, threads, whole>(x, place), place);
}

// Number `index` of row m and block b of 128 columns of the value: 16 lanes hold a block, 32 for a
// value half as wide.
template <class Op, int units, int width>
FUSELINE_DEVICE void reduce_row_blocks(const Partials& to, int index, int numbers,
                                       const TilePlace<units>& place,
                                       const Strip<units, width>& x) {
  constexpr int lanes = partial_tile / width;
  const int first = place.first_col * width / vector_cols;
  const int cols = place.cols * width / vector_cols;
#pragma unroll
  for (int u = 0; u < units; ++u) {
    float sum = Op::start;
#pragma unroll
    for (int e = 0; e < width; ++e)
      if (first + e >= 0 && first + e < cols) sum = Op::join(sum, Op::term(x.v[u][e]));
    sum = join_lanes<Op, lanes>(sum);
    if (first % partial_tile == 0 && first >= 0 && first < cols && place.row(u) < place.rows)
      to.data[static_cast<long long>(place.row(u)) * to.ld + first / partial_tile * numbers +
              index] = sum;
  }
}

// The same in a row mainloop, where each unit of 16 neighbouring threads is a block, or a row of at
// most 128 columns has fewer threads.
template <class Op, int units>
FUSELINE_DEVICE void reduce_row_blocks(const Partials& to, int index, int numbers,
                                       const WholeRow<units>& place, const Strip<units>& x) {
  constexpr int lanes = partial_tile / vector_cols;
#pragma unroll
  for (int u = 0; u < units; ++u) {
    const int first = place.col(u);
    float sum = Op::start;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e)
      if (first + e < place.cols) sum = Op::join(sum, Op::term(x.v[u][e]));
#pragma unroll
    for (int apart = lanes / 2; apart > 0; apart /= 2)
      if (apart * vector_cols < place.col_step)
        sum = Op::join(sum, __shfl_xor_sync(0xffffffffU, sum, apart));
    if (first % partial_tile == 0 && first < place.cols && place.row(u) < place.rows)
      to.data[static_cast<long long>(place.row(u)) * to.ld + first / partial_tile * numbers +
              index] = sum;
  }
}

// Of each row and block of 128 columns: the maximum, the sum of exponentials above it, and the
// target's value if the block holds it, else 0. `to`: [rows, 3 · blocks], the maxima first, then
// the sums, then the targets' values. ids: the target's column, per row.
template <class Ids, int units>
FUSELINE_DEVICE void log_sum_exp_blocks(const Partials& to, const Ids& ids,
                                        const TilePlace<units>& place, const Strip<units>& x) {
  constexpr int lanes = partial_tile / vector_cols;
  const int blocks = ceil_div(place.cols, partial_tile);
#pragma unroll
  for (int u = 0; u < units; ++u) {
    const int target = id_of(ids, place, u) - place.first_col;
    float top = negative_infinity;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e)
      if (place.first_col + e < place.cols) top = fmaxf(top, x.v[u][e]);
    top = join_lanes<Max, lanes>(top);
    float sum = 0.0F;
    float chosen = 0.0F;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) {
      if (place.first_col + e < place.cols) sum += fast_exp(x.v[u][e] - top);
      if (e == target) chosen = x.v[u][e];
    }
    sum = join_lanes<Sum, lanes>(sum);
    chosen = join_lanes<Sum, lanes>(chosen);
    if (place.first_col % partial_tile == 0 && place.first_col < place.cols &&
        place.row(u) < place.rows) {
      float* out =
          to.data + static_cast<long long>(place.row(u)) * to.ld + place.first_col / partial_tile;
      out[0] = top;
      out[blocks] = sum;
      out[2 * blocks] = chosen;
    }
  }
}

// What a thread of a column mainloop carries down its columns.
template <class Op>
struct ColumnState {
  float v[vector_cols];
  FUSELINE_DEVICE ColumnState() {
#pragma unroll
    for (float& x : v) x = Op::start;
  }
};
template <class Op, int units>
FUSELINE_DEVICE void gather_columns(ColumnState<Op>& state, const Strip<units>& x,
                                    const TilePlace<units>& place) {
#pragma unroll
  for (int u = 0; u < units; ++u)
    if (place.row(u) < place.rows)
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) state.v[e] = Op::join(state.v[e], Op::term(x.v[u][e]));
}
// At the end: every thread gets its columns' results. `across`: lanes side by side.
template <int across, int threads, class Op>
FUSELINE_DEVICE PerCol<1> column_result(const ColumnState<Op>& state) {
  __shared__ float parts[threads / 32][across * vector_cols];
  const int lane = static_cast<int>(threadIdx.x % 32);
  PerCol<1> out;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < vector_cols; ++e) {
    float x = state.v[e];
#pragma unroll
    for (int apart = across; apart < 32; apart *= 2)
      x = Op::join(x, __shfl_xor_sync(0xffffffffU, x, apart));
    if (lane < across) parts[threadIdx.x / 32][lane * vector_cols + e] = x;
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < vector_cols; ++e) {
    float x = Op::start;
    for (int warp = 0; warp < threads / 32; ++warp)
      x = Op::join(x, parts[warp][lane % across * vector_cols + e]);
    out.v[0][e] = x;
  }
  return out;
}
// What a thread of a row mainloop carries down the rows of its block, for each of its columns.
template <class Op, int units>
struct ColumnStates {
  float v[units][vector_cols];
  FUSELINE_DEVICE ColumnStates() {
    for_each<Strip<units>>([&](int u, int e) { v[u][e] = Op::start; });
  }
};
template <class Op, int units>
FUSELINE_DEVICE void gather_columns(ColumnStates<Op, units>& state, const Strip<units>& x,
                                    const WholeRow<units>&) {
  for_each<Strip<units>>(
      [&](int u, int e) { state.v[u][e] = Op::join(state.v[u][e], Op::term(x.at(u, e))); });
}
template <class Op, int units>
FUSELINE_DEVICE void store_column_block(const Partials& to, int index, int numbers, int block,
                                        const WholeRow<units>& place,
                                        const ColumnStates<Op, units>& state) {
  for_each<Strip<units>>([&](int u, int e) {
    if (place.col(u) + e < place.cols)
      to.data[static_cast<long long>(place.col(u) + e) * to.ld + block * numbers + index] =
          state.v[u][e];
  });
}

// Column results as row `row` of a matrix.
template <class T, bool aligned, class Place>
FUSELINE_DEVICE void store_column_row(const Tile<T, aligned>& to, int row, const Place& place,
                                      const PerCol<1>& value) {
  store_cols(Cols<T, aligned>{to.at(row, 0)}, place, value);
}
// One block's column results as partials: number `index` of column n and block b of 128 rows.
template <int units>
FUSELINE_DEVICE void store_column_block(const Partials& to, int index, int numbers, int block,
                                        const TilePlace<units>& place, const PerCol<1>& value) {
  if (threadIdx.x >= 32) return;
#pragma unroll
  for (int e = 0; e < vector_cols; ++e)
    if (place.first_col + e < place.cols)
      to.data[static_cast<long long>(place.first_col + e) * to.ld + block * numbers + index] =
          value.v[0][e];
}

}  // namespace fuseline::gpu::stream
