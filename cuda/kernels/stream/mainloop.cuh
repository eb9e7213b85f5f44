// The three mainloops of kernels without a matrix product. They only place the threads; the
// generated Program does the work (README.md). One tile (row, block of columns) per thread block:
// nothing is shared, and the many blocks in flight hide the memory's latency.
//
//   tiles     a warp covers 256 columns (512 bytes of a row) and Program::units rows
//   rows      a row is resident in Program::threads threads, or they walk along it
//   columns   a thread block walks down its columns: column sums need no second kernel
#pragma once

#include "../launch_order.cuh"
#include "convolve.cuh"
#include "experts.cuh"
#include "heads.cuh"
#include "map.cuh"
#include "memory.cuh"
#include "pair.cuh"
#include "places.cuh"
#include "reduce.cuh"
#include "sort.cuh"
#include "tile_space.cuh"

namespace fuseline::gpu::stream {

// ---- tiles: any block of whole warps ----

struct TileSpace {
  int rows, cols;
  int lanes_across;  // of a warp's lanes, and
  int warps_across;  // of a block's warps, so many lie side by side: powers of two
};
// Rows and columns that the threads of a program are spread over: with Program::distance > 0 a
// thread has both columns of a pair, so units are half as many rows and threads half the columns.
template <class Program>
FUSELINE_HD constexpr int unit_rows() {
  return Program::distance > 0 ? Program::units / 2 : Program::units;
}
template <class Program>
FUSELINE_HD constexpr int thread_cols(int cols) {
  return Program::distance > 0 ? cols / 2 : cols;
}
template <int units, int distance>
struct PlaceOf {
  using type = PairPlace<units, distance>;
};
template <int units>
struct PlaceOf<units, 0> {
  using type = TilePlace<units>;
};
template <class Program>
FUSELINE_HD TileSpace tile_space(int rows, int cols, int warps, int least_lanes = 1) {
  const SideBySide across =
      side_by_side(ceil_div(thread_cols<Program>(cols), vector_cols), warps, least_lanes);
  return {rows, cols, across.lanes, across.warps};
}
// Thread blocks of `warps` warps that cover the space.
template <class Program>
FUSELINE_HD long long tile_blocks(const TileSpace& space, int warps) {
  const int down = warps / space.warps_across * (32 / space.lanes_across) * unit_rows<Program>();
  const int across = space.warps_across * space.lanes_across * vector_cols;
  return static_cast<long long>(ceil_div(thread_cols<Program>(space.cols), across)) *
         ceil_div(space.rows, down);
}

template <class Program>
FUSELINE_DEVICE void tiles(const typename Program::Params& params, const TileSpace& space) {
  const int warps = static_cast<int>(blockDim.x / 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int lanes_down = 32 / space.lanes_across;
  const int warp_cols = space.lanes_across * vector_cols;
  const int blocks_across =
      ceil_div(thread_cols<Program>(space.cols), warp_cols * space.warps_across);
  const int block_row = static_cast<int>(blockIdx.x) / blocks_across;
  const int block_col = static_cast<int>(blockIdx.x) - block_row * blocks_across;
  const int down = warps / space.warps_across;
  typename PlaceOf<Program::units, Program::distance>::type place;
  place.first_row =
      (block_row * down + warp / space.warps_across) * unit_rows<Program>() * lanes_down +
      lane / space.lanes_across;
  place.row_step = lanes_down;
  place.first_col = (block_col * space.warps_across + warp % space.warps_across) * warp_cols +
                    lane % space.lanes_across * vector_cols;
  place.rows = space.rows;
  place.cols = space.cols;
  typename Program::State state;
  Program::run(params, state, place);
}

// ---- rows: Program::threads threads a row; at most 32, or the block ----

struct RowSpace {
  int rows, cols;
  int heads, tokens;  // heads = 1: rows as they are
};
template <class Program>
FUSELINE_HD constexpr int rows_per_block(int block_threads) {
  return Program::threads <= 32 ? block_threads / Program::threads : 1;
}

template <int units>
FUSELINE_DEVICE WholeRow<units> whole_row(const RowSpace& space, int row, int thread, int threads) {
  WholeRow<units> place;
  place.the_row = row;
  place.first_col = thread * vector_cols;
  place.col_step = threads * vector_cols;
  place.rows = space.rows;
  place.cols = space.cols;
  place.operand_row = row;
  place.operand_col = 0;
  if (space.heads > 1) {
    const int head = row / space.tokens;
    place.operand_row = head / space.heads * space.tokens + row - head * space.tokens;
    place.operand_col = head % space.heads * space.cols;
  }
  return place;
}

// With Program::inner_rows a thread block has one row after the other of so many, and sums their
// columns.
template <class Program>
FUSELINE_DEVICE void rows(const typename Program::Params& params, const RowSpace& space) {
  const int thread = static_cast<int>(threadIdx.x) % Program::threads;
  typename Program::State state;
  if constexpr (Program::inner_rows > 0) {
    const int block = static_cast<int>(blockIdx.x);
    const int end = min_of(space.rows, (block + 1) * Program::inner_rows);
    for (int row = block * Program::inner_rows; row < end; ++row)
      Program::run(params, state, whole_row<Program::units>(space, row, thread, Program::threads));
    Program::after_block(params, state,
                         whole_row<Program::units>(space, 0, thread, Program::threads), block);
  } else {
    const int row =
        static_cast<int>(blockIdx.x) * rows_per_block<Program>(static_cast<int>(blockDim.x)) +
        static_cast<int>(threadIdx.x) / Program::threads;
    Program::run(params, state, whole_row<Program::units>(space, row, thread, Program::threads));
  }
}

// A row that is too wide to be resident: its threads take `units` at a time. Every reduction is a
// walk of its own, and what it needs is loaded again, mostly from cache.
template <int units, class Step>
FUSELINE_DEVICE void walk(const WholeRow<units>& row, Step&& step) {
  for (WholeRow<units> place = row; place.first_col < place.cols;
       place.first_col += units * place.col_step)
    step(place);
}

// ---- columns: blocks of Program::threads threads, Program::lanes of them side by side ----

struct ColumnSpace {
  int rows, cols;
  int block_rows;  // rows of one block: all of them, those of a sequence, or 128 for partials
};
template <class Program>
FUSELINE_HD int column_blocks(const ColumnSpace& space) {
  return ceil_div(space.cols, Program::lanes * vector_cols) *
         ceil_div(space.rows, space.block_rows);
}

template <class Program>
FUSELINE_DEVICE void columns_down(const typename Program::Params& params,
                                  const ColumnSpace& space) {
  constexpr int lanes = Program::lanes;
  constexpr int down = Program::threads / lanes;
  const int blocks_across = ceil_div(space.cols, lanes * vector_cols);
  const int block_row = static_cast<int>(blockIdx.x) / blocks_across;
  const int block_col = static_cast<int>(blockIdx.x) - block_row * blocks_across;
  const int begin = block_row * space.block_rows;
  TilePlace<Program::units> place;
  place.row_step = down;
  place.first_col = (block_col * lanes + static_cast<int>(threadIdx.x) % lanes) * vector_cols;
  place.rows = min_of(space.rows, begin + space.block_rows);
  place.cols = space.cols;
  typename Program::State state;
  // All threads take the same number of steps: a row's lanes may reduce together.
  const auto walk_down = [&](int first, int last) {
    place.rows = last;
    for (; first < last; first += down * Program::units) {
      place.first_row = first + static_cast<int>(threadIdx.x) / lanes;
      Program::run(params, state, place);
    }
  };
  const int end = place.rows;
  if constexpr (Program::inner_rows > 0) {
    for (int first = begin; first < end; first += Program::inner_rows) {
      walk_down(first, min_of(end, first + Program::inner_rows));
      Program::after_block(params, state, place, first / Program::inner_rows);
    }
  } else {
    walk_down(begin, end);
  }
  Program::finish(params, state, place, block_row);
}

}  // namespace fuseline::gpu::stream
