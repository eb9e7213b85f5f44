// Rows and numbers that lie in another order, by their places: looked for among all places, or at
// places that are known.
#pragma once

#include "memory.cuh"

namespace fuseline::gpu::stream {

// ---- sum_places ----

// The rows ids[row · each + j] of a tensor for one j: no row where the place has none.
template <int each, class Place, class Ids>
FUSELINE_DEVICE GatheredRows<Place> place_of_row(const Place& place, const Ids& ids, int j) {
  GatheredRows<Place> out;
  static_cast<Place&>(out) = place;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u) {
    const int row = place.row(u);
    out.gathered[u] =
        row < place.rows ? static_cast<int>(ids.data[(row * each + j) * ids.step]) : 0;
  }
  return out;
}
// Adds `count` rows to each row of `out`, whose loads are under way together.
template <int each, int count, class T, bool aligned, class Ids, class Place>
FUSELINE_DEVICE void add_rows(Strip<Place::units>& out, const Tile<T, aligned>& from,
                              const Ids& ids, const Place& place, int first) {
  Strip<Place::units> x[count];
#pragma unroll
  for (int i = 0; i < count; ++i)
    x[i] = load_tile(from, place_of_row<each>(place, ids, first + i));
#pragma unroll
  for (int i = 0; i < count; ++i)
    for_each<Strip<Place::units>>([&](int u, int e) { out.at(u, e) += x[i].at(u, e); });
}
// The sum of the rows ids[row · each + j] of `from` for all j, in the order of j.
template <int each, class T, bool aligned, class Ids, class Place>
FUSELINE_DEVICE Strip<Place::units> sum_places(const Tile<T, aligned>& from, const Ids& ids,
                                               const Place& place) {
  constexpr int together = min_of(each, max_of(8 / Place::units, 1));  // 8 loads of 16 bytes
  Strip<Place::units> out{};
#pragma unroll 1
  for (int j = 0; j + together <= each; j += together)
    add_rows<each, together>(out, from, ids, place, j);
  constexpr int rest = each % together;
  if constexpr (rest > 0) add_rows<each, rest>(out, from, ids, place, each - rest);
  return out;
}

// ---- numbers_at ----

// Element (r, c) of a matrix of `cols` columns is the number of row ids[r · cols + c] of `from`.
template <int cols, class T, bool aligned, class Ids, class Place>
FUSELINE_DEVICE Strip<Place::units> numbers_at(const Tile<T, aligned>& from, const Ids& ids,
                                               const Place& place) {
  Strip<Place::units> out;
  for_each<Strip<Place::units>>([&](int u, int e) {
    const int col = place.col(u) + e;
    const bool there = place.row(u) < place.rows && col < cols;
    const int at = there ? static_cast<int>(ids.data[(place.row(u) * cols + col) * ids.step]) : 0;
    out.at(u, e) = there ? to_float(*from.at(at, 0)) : 0.0F;
  });
  return out;
}

// ---- gather_sum of places, in a stream ----

// At most so many row numbers that a warp collects one after the other: number k in lane k mod 32.
template <int most>
struct RowList {
  int mine[ceil_div(most, 32)];
  int count = 0;

  FUSELINE_DEVICE RowList() {
#pragma unroll
    for (int& row : mine) row = -1;
  }

  // Those from `first` on whose bits are set, for all lanes of the warp alike.
  FUSELINE_DEVICE void add(u32 found, int first) {
    const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll 1
    for (; found != 0; found &= found - 1, ++count)
#pragma unroll
      for (int i = 0; i * 32 < most; ++i)
        if (i * 32 + lane == count) mine[i] = first + __ffs(static_cast<int>(found)) - 1;
  }
  // -1 behind the last one.
  FUSELINE_DEVICE int at(int k) const {
    int own = mine[0];
#pragma unroll
    for (int i = 1; i * 32 < most; ++i)
      if (k / 32 == i) own = mine[i];
    return __shfl_sync(0xffffffffU, own, k % 32);
  }
};

// gather_sum (heads.cuh) where ids are places, of which a row has `each`: ids[m] / each = v. A place is one of
// few rows of the warp, and most of 128 ids are not: they are looked at together. A warp first
// finds which rows it adds, and their loads then are under way together. Where each load waited for
// the addition before it, eight rows of each of 16 tokens took 5.8 us on an H200.
template <int each, class T, bool aligned, class Ids, int units>
FUSELINE_DEVICE Strip<units> gather_sum_of_places(const Tile<T, aligned>& from, const Ids& ids,
                                                  const TilePlace<units>& place) {
  constexpr int steps = 4;
  constexpr int together = min_of(each, 8);
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_place = place.row(0) * each;
  const int last_place = place.row(units - 1) * each + each - 1;
  RowList<each> rows[units];
  for (int first = 0; first < from.rows; first += 32 * steps) {
    int id[steps];
    bool some = false;
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int m = first + 32 * i + lane;
      id[i] = m < from.rows ? static_cast<int>(ids.data[m * ids.step]) : -1;
      some = some || (id[i] >= first_place && id[i] <= last_place);
    }
    if (!__any_sync(0xffffffffU, some)) continue;
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      const int row = id[i] >= 0 ? id[i] / each : -1;
#pragma unroll
      for (int u = 0; u < units; ++u)
        rows[u].add(__ballot_sync(0xffffffffU, row == place.row(u)), first + 32 * i);
    }
  }
  Strip<units> out{};
#pragma unroll
  for (int u = 0; u < units; ++u) {
#pragma unroll 1
    for (int k = 0; k < each; k += together) {
      Strip<1> x[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const int m = k + i < each ? rows[u].at(k + i) : -1;
        x[i] = load_tile(from, TilePlace<1>{m < 0 ? from.rows : m, 1, place.first_col, from.rows,
                                            from.cols});
      }
#pragma unroll
      for (int i = 0; i < together; ++i)
#pragma unroll
        for (int e = 0; e < vector_cols; ++e) out.v[u][e] += x[i].v[0][e];
    }
  }
  return out;
}

// ---- place_numbers, in a stream ----

// Element (r, c) of a matrix of `cols` columns is the number of the row m of `from` with ids[m] =
// r · cols + c. All lanes of a warp must be at the same rows: they look for the places of these
// rows among 32 ids at a time, and every lane keeps what belongs to its columns.
template <int cols, class T, bool aligned, class Ids, int units>
FUSELINE_DEVICE Strip<units> place_numbers(const Tile<T, aligned>& from, const Ids& ids,
                                           const TilePlace<units>& place) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int first_place = place.row(0) * cols;
  const int last_place = place.row(units - 1) * cols + cols - 1;
  Strip<units> out{};
  for (int first = 0; first < from.rows; first += 32) {
    const int m = first + lane;
    const int id = m < from.rows ? static_cast<int>(ids.data[m * ids.step]) : -1;
    u32 found = __ballot_sync(0xffffffffU, id >= first_place && id <= last_place);
    for (; found != 0; found &= found - 1) {
      const int source = __ffs(static_cast<int>(found)) - 1;
      const int at = __shfl_sync(0xffffffffU, id, source);
      const float number = to_float(*from.at(first + source, 0));
      for_each<Strip<units>>([&](int u, int e) {
        if (place.row(u) * cols + place.first_col + e == at && place.first_col + e < cols)
          out.at(u, e) = number;
      });
    }
  }
  return out;
}

// ---- gather_number ----

// Number ids[row] of a matrix of `cols` columns, counted row by row.
template <int cols, class T, class Ids, class Place>
FUSELINE_DEVICE PerRow<Place::row_units> load_numbers(const Rows<T>& from, const Ids& ids,
                                                      const Place& place) {
  PerRow<Place::row_units> out;
#pragma unroll
  for (int u = 0; u < Place::row_units; ++u) {
    const int id = id_of(ids, place, u);
    out.v[u] = id >= 0 ? to_float(from.data[id / cols * from.step + id % cols]) : 0.0F;
  }
  return out;
}

}  // namespace fuseline::gpu::stream
