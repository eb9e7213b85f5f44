// Loads and stores of streams. A thread moves 8 columns, 16 bytes of a 16-bit tensor. Whether rows
// allow that is known when the program is compiled (Tile's `aligned`): then a load is one
// predicated instruction, and all loads of a thread are under way before the first is waited for. A
// branch around them would cost half of the bandwidth.
#pragma once

#include "../byte_types.cuh"
#include "place.cuh"

namespace fuseline::gpu::stream {

// A matrix: an operand, from its first column on. `aligned`: data and ld are multiples of 16 bytes,
// and so are cols, or what follows them up to the next 16 bytes belongs to nobody (rows of a tensor
// are padded): there numbers without a meaning are loaded and stored. Else elements move one by
// one. Where period > 0 it is a part of every
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
// One number per column, next to each other. `aligned`: as for tiles.
template <class T, bool aligned = true>
struct Cols {
  T* data;
};
// Element (m mod period, n mod cols) belongs to (m, n). `aligned`: data, ld and cols are multiples
// of 8 elements.
template <class T, bool aligned = true>
struct Table {
  const T* data;
  int period, cols, ld;
};

// 16 bytes from aligned memory, or zeros.
FUSELINE_DEVICE uint4 fetch_if(bool wanted, const void* from) {
  uint4 x = make_uint4(0, 0, 0, 0);
  if (wanted) x = __ldg(static_cast<const uint4*>(from));
  return x;
}
// `width` aligned neighbours, of which the first `count` are wanted, or a few more: 16 bytes have
// some of them, or are zeros.
template <class T, int width>
FUSELINE_DEVICE void read_some(int count, const T* from, float (&to)[width]) {
  const bool wanted = count > 0;
  if constexpr (sizeof(T) == 1) {
#pragma unroll
    for (int i = 0; i < (width + 7) / 8; ++i) {
      uint2 x = make_uint2(0, 0);
      if constexpr (width == 4) {
        if (wanted) x.x = __ldg(reinterpret_cast<const u32*>(from));
      } else {
        if (8 * i < count) x = __ldg(reinterpret_cast<const uint2*>(from + 8 * i));
      }
      float eight[8];
      unpack_bytes<T>(x, eight);
#pragma unroll
      for (int e = 0; e < min_of(width, 8); ++e) to[8 * i + e] = eight[e];
    }
  } else if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i) {
      const uint4 x = fetch_if(4 * i < count, from + 4 * i);
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
      const uint4 x = fetch_if(8 * i < count, from + 8 * i);
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
FUSELINE_DEVICE void write_some(int count, T* to, const float (&from)[width]) {
  if constexpr (sizeof(T) == 1) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i)
      if (4 * i < count)
        reinterpret_cast<u32*>(to)[i] =
            pack_bytes<T>(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
  } else if constexpr (sizeof(T) == 4) {
#pragma unroll
    for (int i = 0; i < width / 4; ++i)
      if (4 * i < count)
        reinterpret_cast<float4*>(to)[i] =
            make_float4(from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]);
  } else if constexpr (width == 4) {
    if (count > 0)
      *reinterpret_cast<uint2*>(to) =
          make_uint2(pack<T>(from[0], from[1]), pack<T>(from[2], from[3]));
  } else {
#pragma unroll
    for (int i = 0; i < width / 8; ++i)
      if (8 * i < count)
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
// How many columns of it do, or more than a unit has.
template <class Place>
FUSELINE_DEVICE int existing(const Place& place, int u, int col, int cols) {
  return exists(place, u, col, cols) ? cols - col : 0;
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
      read_some(existing(place, u, first, from.cols), from.at(place.memory_row(u), first),
                out.v[u]);
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
      const int count = existing(place, u, first, to.cols);
      float x[width];
#pragma unroll
      for (int e = 0; e < width; ++e) {
        x[e] = value.at(u, e);
        if (accumulate && e < count) x[e] += to_float(at[e]);
      }
      write_some(count, at, x);
    } else {
#pragma unroll
      for (int e = 0; e < width; ++e)
        if (exists(place, u, first + e, to.cols))
          at[e] = from_float<T>(accumulate ? to_float(at[e]) + value.at(u, e) : value.at(u, e));
    }
  }
}

// Number i of a row at all of its columns [i · group, (i + 1) · group).
template <int group, class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> load_groups(const Tile<T, aligned>& from, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const auto number = [&](int at) {
      return exists(place, u, at, from.cols) ? to_float(*from.at(place.memory_row(u), at)) : 0.0F;
    };
    // One load for all columns of a thread where they are of one group, as whole groups of 8 are.
    const int first = place.col(u) / group, last = (place.col(u) + vector_cols - 1) / group;
    if (first == last) {
      const float one = number(first);
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) out.v[u][e] = one;
    } else {
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) out.v[u][e] = number((place.col(u) + e) / group);
    }
  }
  return out;
}
// Of every `group` columns the number at the first: all have the same.
template <int group, class T, bool aligned, class Place, class Value>
FUSELINE_DEVICE void store_groups(const Tile<T, aligned>& to, const Place& place,
                                  const Value& value) {
#pragma unroll
  for (int u = 0; u < Place::units; ++u)
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) {
      const int col = place.col(u) + e;
      if (col % group == 0 && exists(place, u, col / group, to.cols))
        *to.at(place.memory_row(u), col / group) = from_float<T>(value.at(u, e));
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
// The sum of numbers first, first + every, ... of the `cols` that every row has.
template <int cols, int every, int first, class T, class Place>
FUSELINE_DEVICE PerRow<Place::row_units> load_row_sums(const Rows<T>& from, const Place& place) {
  PerRow<Place::row_units> out;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u) {
    float sum = 0.0F;
    if (place.row(u) < place.rows) {
#pragma unroll 8
      for (int c = first; c < cols; c += every)
        sum += to_float(from.data[place.row(u) * from.step + c]);
    }
    out.v[u] = sum;
  }
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
      read_some(col >= 0 ? place.cols - col : 0, from.data + col, out.v[u]);
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

template <class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> load_table(const Table<T, aligned>& from, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int row = min_of(place.memory_row(u), place.rows - 1) % from.period;
    const int col = max_of(place.memory_col(u), 0);
    const T* data = from.data + static_cast<long long>(row) * from.ld;
    if constexpr (aligned) {
      read_some(vector_cols, data + col % from.cols, out.v[u]);
    } else {
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) out.v[u][e] = to_float(data[(col + e) % from.cols]);
    }
  }
  return out;
}

// A table that begins again after `period` columns and has fewer: `rest` stands in the others.
template <int period, class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> load_table_part(const Table<T, aligned>& from,
                                                    const Place& place, float rest) {
  constexpr bool whole = aligned && period % vector_cols == 0;  // a unit has columns or has none
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int row = min_of(place.memory_row(u), place.rows - 1) % from.period;
    const int col = max_of(place.memory_col(u), 0);
    const T* data = from.data + static_cast<long long>(row) * from.ld;
    if constexpr (whole) {
      const int c = col % period;
      const bool has = c < from.cols;
      read_some(has ? vector_cols : 0, data + (has ? c : 0), out.v[u]);
      if (!has) {
#pragma unroll
        for (int e = 0; e < vector_cols; ++e) out.v[u][e] = rest;
      }
    } else {
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) {
        const int c = (col + e) % period;
        out.v[u][e] = c < from.cols ? to_float(data[c]) : rest;
      }
    }
  }
  return out;
}

}  // namespace fuseline::gpu::stream
