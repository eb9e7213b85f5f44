// Tile reductions. A sum over a row (or column) of the whole result needs other thread blocks, so a
// tile leaves one fp32 partial per row and 128 columns (or per column and 128 rows), and a small
// finisher kernel adds them up.
//
// A row lies in 4 lanes: registers first, then two shuffles (xor 1, 2). A column lies in 8 lanes of
// each warp: shuffles (xor 16, 8, 4), then shared memory across the warps below each other.
#pragma once

#include "../element.cuh"
#include "../ptx/matrix.cuh"
#include "../ptx/sync.cuh"
#include "place.cuh"

namespace fuseline::gpu {

constexpr int partial_tile = 128;  // = fuseline::partial_tile of model/program.h
constexpr float negative_infinity = __builtin_bit_cast(float, 0xff800000U);

struct Sum {
  static constexpr float start = 0.0F;
  static FUSELINE_DEVICE float term(float x) { return x; }
  static FUSELINE_DEVICE float join(float a, float b) { return a + b; }
};
struct SumSquares {
  static constexpr float start = 0.0F;
  static FUSELINE_DEVICE float term(float x) { return x * x; }
  static FUSELINE_DEVICE float join(float a, float b) { return a + b; }
};
struct Max {
  static constexpr float start = negative_infinity;
  static FUSELINE_DEVICE float term(float x) { return x; }
  static FUSELINE_DEVICE float join(float a, float b) { return fmaxf(a, b); }
};

// Partials: number `i` of row m (column n) and block b is data[m · ld + b · numbers + i].
struct Partials {
  float* data;
  int ld;
};

// What a thread carries from slab to slab of a block of 128 columns.
template <class Op>
struct RowState {
  float v[2] = {Op::start, Op::start};
};

// Whether two warpgroups have half of a block's columns each (sm90/turned_tile.cuh): one of them
// then joins both.
template <class Slab, int each>
constexpr bool has_half_blocks = Slab::tile_cols / 2 * each == partial_tile / 2;

// Whether a slab, with `cols` columns of a value, is the last of a block of 128, or of its half.
template <int cols, int block = partial_tile, class Slab>
FUSELINE_HD bool ends_block(const Slab& slab) {
  return (slab.number() + 1) % (block / cols) == 0;
}
template <class Value, class Slab>
FUSELINE_HD bool ends_block_of(const Slab& slab) {
  return ends_block<Value::cols,
                    has_half_blocks<Slab, Value::each> ? partial_tile / 2 : partial_tile>(slab);
}

template <class Op, class Slab, int each, int groups>
FUSELINE_DEVICE void gather_rows(const Slab& slab, RowState<Op>& state,
                                 const Fragment<each, groups>& x) {
  const int lane = threadIdx.x % 32;
  if (slab.whole()) {
    for_each_element<Fragment<each, groups>>(
        [&](int h, int g, int e) { state.v[h] = Op::join(state.v[h], Op::term(x.at(h, g, e))); });
  } else {
    const int first = slab.template first_col<each>();
    const int width = slab.template width<each>();
    for_each_element<Fragment<each, groups>>([&](int h, int g, int e) {
      const int col = first + fragment_col(each, lane, g, e);
      if (col >= 0 && col < width) state.v[h] = Op::join(state.v[h], Op::term(x.at(h, g, e)));
    });
  }
}

// After the last slab of a block: the four lanes of a row join, the first of them writes.
template <class Op, int each, class Slab>
FUSELINE_DEVICE void finish_rows(const Slab& slab, RowState<Op>& state, const Partials& to,
                                 int numbers, int number) {
  static_assert((Slab::tile_cols / 2 * each) % partial_tile == 0 || has_half_blocks<Slab, each>,
                "a tile must hold whole blocks of 128 columns");
  const int lane = threadIdx.x % 32;
  const int block = slab.template first_col<each>() / partial_tile;
  float v[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    v[half] = state.v[half];
    v[half] = Op::join(v[half], __shfl_xor_sync(0xffffffffU, v[half], 1));
    v[half] = Op::join(v[half], __shfl_xor_sync(0xffffffffU, v[half], 2));
    state.v[half] = Op::start;
  }
  if constexpr (has_half_blocks<Slab, each>)
    if (!slab.template join_halves<Op>(v, number)) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = slab.row + fragment_row(lane, half);
    if (lane % 4 == 0 && row < slab.rows && block * partial_tile < slab.template width<each>())
      to.data[static_cast<long long>(row) * to.ld + block * numbers + number] = v[half];
  }
}

// One number per row and block.
template <class Op, class Slab, int each, int groups>
FUSELINE_DEVICE void reduce_rows(const Slab& slab, const Partials& to, RowState<Op>& state,
                                 const Fragment<each, groups>& x) {
  gather_rows(slab, state, x);
  if (ends_block_of<Fragment<each, groups>>(slab))
    finish_rows<Op, each>(slab, state, to, 1, 0);
}

// Two neighbouring numbers per row and block: of x, then of y (sum and sum of squares: x twice).
template <class OpX, class OpY, class Slab, int each, int groups>
FUSELINE_DEVICE void reduce_rows(const Slab& slab, const Partials& to, RowState<OpX>& state_x,
                                 RowState<OpY>& state_y, const Fragment<each, groups>& x,
                                 const Fragment<each, groups>& y) {
  gather_rows(slab, state_x, x);
  gather_rows(slab, state_y, y);
  if (ends_block_of<Fragment<each, groups>>(slab)) {
    finish_rows<OpX, each>(slab, state_x, to, 2, 0);
    finish_rows<OpY, each>(slab, state_y, to, 2, 1);
  }
}

// What Op makes of every `group` columns of a row, at each of them. A slab holds whole groups: the
// four lanes of a row join.
template <class Op, int group, int each, int groups>
FUSELINE_DEVICE Fragment<each, groups> group_reduce(const Fragment<each, groups>& x) {
  constexpr int of_lane = group / (4 * each);  // of a fragment's groups
  static_assert(group % (4 * each) == 0 && groups % of_lane == 0, "a slab cuts a group of columns");
  Fragment<each, groups> out;
#pragma unroll
  for (int first = 0; first < groups; first += of_lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float v = Op::start;
#pragma unroll
      for (int g = first; g < first + of_lane; ++g)
#pragma unroll
        for (int e = 0; e < each; ++e) v = Op::join(v, Op::term(x.at(half, g, e)));
      v = Op::join(v, __shfl_xor_sync(0xffffffffU, v, 1));
      v = Op::join(v, __shfl_xor_sync(0xffffffffU, v, 2));
#pragma unroll
      for (int g = first; g < first + of_lane; ++g)
#pragma unroll
        for (int e = 0; e < each; ++e) out.at(half, g, e) = v;
    }
  }
  return out;
}

// Joins `values` columns, 8 at most, over the 8 lanes below each other in a strip. At each step a lane
// gives half of its columns away and keeps the others, so that 4 columns take 4 shuffles where one
// after the other took 12. Afterwards v[0] is column first_left(); of fewer than 8 columns several
// lanes have the same one.
template <class Op, int values, int distance = 16>
FUSELINE_DEVICE void join_down_lanes(float* v, int lane) {
  if constexpr (distance >= 4) {
    if constexpr (values > 1) {
      constexpr int kept = values / 2;
      const bool upper = (lane & distance) != 0;
#pragma unroll
      for (int i = 0; i < kept; ++i) {
        const float given = upper ? v[i] : v[i + kept];
        v[i] = Op::join(upper ? v[i + kept] : v[i],
                        __shfl_xor_sync(0xffffffffU, given, distance));
      }
      join_down_lanes<Op, kept, distance / 2>(v, lane);
    } else {
      v[0] = Op::join(v[0], __shfl_xor_sync(0xffffffffU, v[0], distance));
      join_down_lanes<Op, 1, distance / 2>(v, lane);
    }
  }
}
template <int values, int distance = 16>
FUSELINE_HD int first_left(int lane) {
  if constexpr (distance >= 4 && values > 1)
    return ((lane & distance) != 0 ? values / 2 : 0) + first_left<values / 2, distance / 2>(lane);
  else
    return 0;
}

// One number per column and block of 128 rows. The warps of the tile write their strips of 16 rows
// to scratch memory, and one thread per column adds the eight. A warp may hold several strips: it
// runs the epilogue for one after the other, so that an epilogue's second, third, ... column
// reduction (`slot` 1, 2, ...) needs scratch of its own.
//
// A turned tile has any number of rows, 128 or more, and four warps below each other, each of which
// adds its strips one after the other. Its number stands for all of its rows: of ⌈M / 128⌉ numbers
// the first ⌈M / rows⌉ are the tiles', and the others hold what a sum begins with. Whoever adds them
// all up gets the column's sum.
template <class Op, class Slab, int each, int groups>
FUSELINE_DEVICE void reduce_cols(const Slab& slab, const Partials& to,
                                 const Fragment<each, groups>& x, int numbers = 1, int number = 0,
                                 int slot = 0) {
  static_assert(Slab::adds_strips ? Slab::tile_rows >= partial_tile
                                  : Slab::tile_rows == partial_tile,
                "a tile must hold one block of 128 rows");
  constexpr int cols = Fragment<each, groups>::cols;
  constexpr int strips = Slab::adds_strips ? 4 : partial_tile / 16;
  static_assert(cols <= (Slab::adds_strips ? 128 : Slab::tile_threads), "one thread a column");
  const int lane = threadIdx.x % 32;
  if (slab.strip == 0) slab.column_barrier();      // what the scratch held before has been read
  const u32 scratch = slab.column_scratch(slot);
  const u32 mine = scratch + 4 * (slab.row_in_tile / 16 % strips * cols);
  const int rows = slab.rows - slab.row - fragment_row(lane, 0);  // from this lane's first row on
  const bool first = rows > 0, second = rows > fragment_row(0, 1);
  // Of upright tiles four columns of a lane at a time: eight would spill beside two tiles that are
  // still wanted. Turned ones have the registers, and eight columns take as long as four.
  constexpr int values = min_of(groups * each, Slab::adds_strips ? 8 : 4);
#pragma unroll
  for (int begin = 0; begin < groups * each; begin += values) {
    float v[values];
#pragma unroll
    for (int i = 0; i < values; ++i) {
      const int group = (begin + i) / each, e = (begin + i) % each;
      v[i] = Op::join(first ? Op::term(x.at(0, group, e)) : Op::start,
                      second ? Op::term(x.at(1, group, e)) : Op::start);
    }
    join_down_lanes<Op, values>(v, lane);
    const int value = begin + first_left<values>(lane);
    const u32 place = mine + 4 * fragment_col(each, lane, value / each, value % each);
    if constexpr (Slab::adds_strips) {
      constexpr int alike = 32 / values - 4;  // bits of lanes that have the same column
      if ((lane & alike) == 0) {
        if (slab.strip > 0) v[0] = Op::join(load_shared_float(place), v[0]);
        store_shared(place, v[0]);
      }
    } else {
      store_shared(place, v[0]);
    }
  }
  if (slab.strip + 1 < Slab::strips_per_warp) return;
  slab.column_barrier();
  const int own = slab.column_thread();
  const int col = slab.template first_col<each>() + own;
  if (own < cols && col >= 0 && col < slab.template width<each>()) {
    float joined = Op::start;
#pragma unroll
    for (int strip = 0; strip < strips; ++strip)
      joined = Op::join(joined, load_shared_float(scratch + 4 * (strip * cols + own)));
    float* const of_column = to.data + static_cast<long long>(col) * to.ld + number;
    if constexpr (Slab::adds_strips) {
      const int tile = (slab.row - slab.row_in_tile) / Slab::tile_rows;
      const int tiles = ceil_div(slab.all_rows, Slab::tile_rows);
      for (int block = tile; block < ceil_div(slab.all_rows, partial_tile); block += tiles)
        of_column[block * numbers] = block == tile ? joined : Op::start;
    } else {
      of_column[(slab.row - slab.row_in_tile) / partial_tile * numbers] = joined;
    }
  }
}

}  // namespace fuseline::gpu
