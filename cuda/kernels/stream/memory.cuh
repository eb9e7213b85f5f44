// Loads and stores of streams. A thread moves 8 columns, 16 bytes of a 16-bit tensor. Whether rows
// allow that is known when the program is compiled (Tile's `aligned`): then a load is one
// predicated instruction, and all loads of a thread are under way before the first is waited for. A
// branch around them would cost half of the bandwidth.
#pragma once

#include "../element.cuh"
#include "place.cuh"

namespace fuseline::gpu::stream {

// A matrix: an operand, from its first column on. `aligned`: data, ld and cols are multiples of
// 16 bytes (fp32: 32); else elements move one by one. Where period > 0 it is a part of every
// sequence of a longer tensor (new rows of a cache): row m is at m / period · jump + m mod period.
template <class T, bool aligned = true>
struct Tile {
  T* data;
  long long ld;
  int rows, cols;
  int period = 0, jump = 0;
  FUSELINE_DEVICE T* at(int row, int col) const {
    const int m = period > 0 ? row / period * jump + row % period : row;
    return data + m * ld + col;
  }
};
// One number per row: number m at data[m · step].
template <class T>
struct Rows {
  T* data;
  long long step;
};
// One number per column, next to each other. `aligned`: their number is a multiple of 8.
template <class T, bool aligned = true>
struct Cols {
  T* data;
};
// Element (m mod period, n mod cols) belongs to (m, n). cols is a multiple of 8.
template <class T>
struct Table {
  const T* data;
  int period, cols;
};

// 16 bytes from aligned memory, or zeros.
FUSELINE_DEVICE uint4 fetch_if(bool wanted, const void* from) {
  uint4 x = make_uint4(0, 0, 0, 0);
  if (wanted) x = __ldg(static_cast<const uint4*>(from));
  return x;
}
// `width` aligned neighbours, or zeros.
template <class T, int width>
FUSELINE_DEVICE void read_if(bool wanted, const T* from, float (&to)[width]) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i) {
      const uint4 x = fetch_if(wanted, from + 4 * i);
      to[4 * i] = __uint_as_float(x.x);
      to[4 * i + 1] = __uint_as_float(x.y);
      to[4 * i + 2] = __uint_as_float(x.z);
      to[4 * i + 3] = __uint_as_float(x.w);
    }
  } else if constexpr (width == 4) {
    uint2 x = make_uint2(0, 0);
    if (wanted) x = __ldg(reinterpret_cast<const uint2*>(from));
    const u32 words[2] = {x.x, x.y};
#pragma unroll
    for (int w = 0; w < 2; ++w) {
      const FloatPair pair = unpack<T>(words[w]);
      to[2 * w] = pair.low;
      to[2 * w + 1] = pair.high;
    }
  } else {
#pragma unroll
    for (int i = 0; i < width / 8; ++i) {
      const uint4 x = fetch_if(wanted, from + 8 * i);
      const u32 words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const FloatPair pair = unpack<T>(words[w]);
        to[8 * i + 2 * w] = pair.low;
        to[8 * i + 2 * w + 1] = pair.high;
      }
    }
  }
}
template <class T, int width>
FUSELINE_DEVICE void write_aligned(T* to, const float (&from)[width]) {
  if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i)
      reinterpret_cast<float4*>(to)[i] =
          make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
  } else if constexpr (width == 4) {
    *reinterpret_cast<uint2*>(to) =
        make_uint2(pack<T>(from[0], from[1]), pack<T>(from[2], from[3]));
  } else {
#pragma unroll
    for (int i = 0; i < width / 8; ++i)
      reinterpret_cast<uint4*>(to)[i] = make_uint4(
          pack<T>(from[8 * i], from[8 * i + 1]), pack<T>(from[8 * i + 2], from[8 * i + 3]),
          pack<T>(from[8 * i + 4], from[8 * i + 5]), pack<T>(from[8 * i + 6], from[8 * i + 7]));
  }
}

// Whether unit u, from its first column `col` in the operand on, exists.
template <class Place>
FUSELINE_DEVICE bool exists(const Place& place, int u, int col, int cols) {
  return place.row(u) < place.rows && place.col(u) < place.cols && col >= 0 && col < cols;
}

// width: 16 or 4 where the tile has twice or half the columns of the space. Outside: 0.
template <int width = vector_cols, class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units, width> load_tile(const Tile<T, aligned>& from,
                                                     const Place& place) {
  Strip<Place::units, width> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int first = place.memory_col(u) * width / vector_cols;
    if constexpr (aligned) {
      read_if(exists(place, u, first, from.cols), from.at(place.memory_row(u), first), out.v[u]);
    } else {
#pragma unroll
      for (int e = 0; e < width; ++e)
        out.v[u][e] = exists(place, u, first + e, from.cols)
                          ? to_float(*from.at(place.memory_row(u), first + e))
                          : 0.0F;
    }
  }
  return out;
}

// A value without rows or columns is repeated. `accumulate` adds to what is there.
template <bool accumulate = false, class T, bool aligned, class Place, class Value>
FUSELINE_DEVICE void store_tile(const Tile<T, aligned>& to, const Place& place,
                                const Value& value) {
  constexpr int width = Value::per_col ? Value::width : vector_cols;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int first = place.memory_col(u) * width / vector_cols;
    T* at = to.at(place.memory_row(u), first);
    if constexpr (aligned) {
      const bool there = exists(place, u, first, to.cols);
      float x[width];
#pragma unroll
      for (int e = 0; e < width; ++e) {
        x[e] = value.at(u, e);
        if (accumulate && there) x[e] += to_float(at[e]);
      }
      if (there) write_aligned(at, x);
    } else {
#pragma unroll
      for (int e = 0; e < width; ++e)
        if (exists(place, u, first + e, to.cols))
          at[e] = from_float<T>(accumulate ? to_float(at[e]) + value.at(u, e) : value.at(u, e));
    }
  }
}

template <class T, class Place>
FUSELINE_DEVICE PerRow<Place::row_units> load_rows(const Rows<T>& from, const Place& place) {
  PerRow<Place::row_units> out;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u)
    out.v[u] = place.row(u) < place.rows ? to_float(from.data[place.row(u) * from.step]) : 0.0F;
  return out;
}
template <class T, class Place>
FUSELINE_DEVICE void store_rows(const Rows<T>& to, const Place& place,
                                const PerRow<Place::row_units>& value) {
  if (!place.writes_rows()) return;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u)
    if (place.row(u) < place.rows) to.data[place.row(u) * to.step] = from_float<T>(value.v[u]);
}

template <class T, bool aligned, class Place>
FUSELINE_DEVICE PerCol<Place::col_units> load_cols(const Cols<T, aligned>& from,
                                                   const Place& place) {
  PerCol<Place::col_units> out;
#pragma unroll
  for (int u = 0; u < Place::col_units; ++u) {
    const int col = place.col(u);
    if constexpr (aligned) {
      read_if(col >= 0 && col < place.cols, from.data + col, out.v[u]);
    } else {
#pragma unroll
      for (int e = 0; e < vector_cols; ++e)
        out.v[u][e] = col + e >= 0 && col + e < place.cols ? to_float(from.data[col + e]) : 0.0F;
    }
  }
  return out;
}
// After a column reduction every thread of a column has the result; all store the same.
template <class T, bool aligned, class Place>
FUSELINE_DEVICE void store_cols(const Cols<T, aligned>& to, const Place& place,
                                const PerCol<1>& value) {
  if (threadIdx.x >= 32) return;
#pragma unroll
  for (int e = 0; e < vector_cols; ++e)
    if (place.first_col + e < place.cols)
      to.data[place.first_col + e] = from_float<T>(value.v[0][e]);
}

template <class T, class Place>
FUSELINE_DEVICE Strip<Place::units> load_table(const Table<T>& from, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int row = min_of(place.memory_row(u), place.rows - 1) % from.period;
    const int col = max_of(place.memory_col(u), 0) % from.cols;
    read_if(true, from.data + static_cast<long long>(row) * from.cols + col, out.v[u]);
  }
  return out;
}

// Half of every `group` columns of `from`: column c of the result is column
// c / (group / 2) · group + c mod (group / 2), + group / 2 for the upper half.
template <int group, bool upper, class T, bool aligned, int units>
FUSELINE_DEVICE Strip<units> load_halves(const Tile<T, aligned>& from,
                                         const TilePlace<units>& place) {
  constexpr int half = group / 2;
  const int c = place.first_col;
  if constexpr (half % vector_cols == 0) {
    TilePlace<units> there = place.at_column(c / half * group + c % half + (upper ? half : 0));
    there.cols = from.cols;
    return load_tile(from, there);
  } else {
    Strip<units> out;
#pragma unroll
    for (int u = 0; u < units; ++u)
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) {
        const int col = (c + e) / half * group + (c + e) % half + (upper ? half : 0);
        const bool there = place.row(u) < place.rows && c + e < place.cols && col < from.cols;
        out.v[u][e] = there ? to_float(*from.at(place.memory_row(u), col)) : 0.0F;
      }
    return out;
  }
}

// The inverse. `lower` and `upper` compute a half's value at a place among the halves' columns, of
// which there are half as many; each thread needs only one of them.
template <int group, int units, class Lower, class Upper>
FUSELINE_DEVICE Strip<units> concat_halves(const TilePlace<units>& place, Lower&& lower,
                                           Upper&& upper) {
  constexpr int half = group / 2;
  static_assert(half % vector_cols == 0, "a thread's columns lie in one half");
  const int c = place.first_col;
  TilePlace<units> there = place.at_column(c / group * half + c % half);
  there.cols = place.cols / 2;
  if (c % group < half) return lower(there);
  return upper(there);
}

// Sums over `count` adjacent groups of `width` columns; `value` computes a place of the wide
// operand, which has `count` times the columns.
template <int count, int width, int units, class Value>
FUSELINE_DEVICE Strip<units> head_sum(const TilePlace<units>& place, Value&& value) {
  static_assert(width % vector_cols == 0, "a thread's columns lie in one group");
  const int group = place.first_col / width;
  Strip<units> out{};
#pragma unroll
  for (int i = 0; i < count; ++i) {
    TilePlace<units> there = place.at_column((group * count + i) * width + place.first_col % width);
    there.cols = place.cols * count;
    const Strip<units> x = value(there);
    for_each<Strip<units>>([&](int u, int e) { out.at(u, e) += x.at(u, e); });
  }
  return out;
}

// Row v of the result is the sum of the rows m of `from` with ids[m] = v, in the order of m. All
// lanes of a warp are at the same rows, so they look at 32 ids at a time.
template <class T, bool aligned, int units>
FUSELINE_DEVICE Strip<units> gather_sum(const Tile<T, aligned>& from, const int* ids,
                                        const TilePlace<units>& place) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Strip<units> out{};
  for (int first = 0; first < from.rows; first += 32) {
    const int id = first + lane < from.rows ? ids[first + lane] : -1;
#pragma unroll
    for (int u = 0; u < units; ++u) {
      u32 found = __ballot_sync(0xffffffffU, id == place.row(u));
      for (; found != 0; found &= found - 1) {
        const int m = first + __ffs(static_cast<int>(found)) - 1;
#pragma unroll
        for (int e = 0; e < vector_cols; ++e)
          if (place.first_col + e < from.cols)
            out.v[u][e] += to_float(*from.at(m, place.first_col + e));
      }
    }
  }
  return out;
}
// The same with m mod period = v.
template <class T, bool aligned, int units>
FUSELINE_DEVICE Strip<units> period_sum(const Tile<T, aligned>& from, int period,
                                        const TilePlace<units>& place) {
  Strip<units> out{};
  for (int first = 0; first < from.rows; first += period) {
    TilePlace<units> there = place;
    there.first_row += first;
    there.rows = from.rows;
    const Strip<units> x = load_tile(from, there);
    for_each<Strip<units>>([&](int u, int e) { out.at(u, e) += x.at(u, e); });
  }
  return out;
}

// 1 in column ids[row], 0 elsewhere.
template <class Place>
FUSELINE_DEVICE Strip<Place::units> one_hot(const int* ids, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int id = place.row(u) < place.rows ? ids[place.row(u)] : -1;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) out.v[u][e] = place.col(u) + e == id ? 1.0F : 0.0F;
  }
  return out;
}

}  // namespace fuseline::gpu::stream
