// Values that a thread finds at other columns, rows or ids: halves of heads, sums over heads,
// gathered rows, masks of attention.
#pragma once

#include "../epilogue/reduce.cuh"
#include "memory.cuh"

namespace fuseline::gpu::stream {

// Half of every `group` columns of `from`: column c of the result is column
// c / (group / 2) · group + c mod (group / 2), + group / 2 for the upper half.
template <int group, bool upper, class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> load_halves(const Tile<T, aligned>& from, const Place& place) {
  constexpr int half = group / 2;
  const int cols = place.cols;
  const auto column_of = [cols](int c) {
    return c < cols ? c / half * group + c % half + (upper ? half : 0) : 2 * cols;
  };
  return value_elsewhere<half % vector_cols == 0>(
      place, from.cols, column_of, [&](const auto& there) { return load_tile(from, there); });
}

// Columns begin, begin + step, ... of every `group`, `count` of them.
template <int group, int begin, int step, int count, class T, bool aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> load_part(const Tile<T, aligned>& from, const Place& place) {
  const int cols = place.cols;
  const int beyond = from.cols;
  const auto column_of = [cols, beyond](int c) {
    return c < cols ? c / count * group + begin + c % count * step : beyond;
  };
  constexpr bool together =
      step == 1 && count % vector_cols == 0 && group % vector_cols == 0 && begin % vector_cols == 0;
  return value_elsewhere<together>(place, from.cols, column_of,
                                   [&](const auto& there) { return load_tile(from, there); });
}

// The first `cols` columns again and again along the row.
template <int cols, class T, class Place>
FUSELINE_DEVICE Strip<Place::units> load_repeated(const Rows<T>& from, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u)
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) {
      const int col = place.col(u) + e;
      out.v[u][e] = place.row(u) < place.rows && col >= 0 && col < place.cols
                        ? to_float(from.data[place.row(u) * from.step + col % cols])
                        : 0.0F;
    }
  return out;
}

// The inverse of load_halves. `lower` and `upper` compute a half's value at a place among the
// halves' columns, of which there are half as many; each column needs only one of them.
template <int group, int units, class Lower, class Upper>
FUSELINE_DEVICE Strip<units> concat_halves(const TilePlace<units>& place, Lower&& lower,
                                           Upper&& upper) {
  constexpr int half = group / 2;
  const auto column_of = [](int c) { return c / group * half + c % half; };
  if constexpr (half % vector_cols == 0) {
    // A thread's columns lie in one half.
    TilePlace<units> there = place.at_column(column_of(place.first_col));
    there.cols = place.cols / 2;
    if (place.first_col % group < half) return lower(there);
    return upper(there);
  } else {
    const auto low = value_elsewhere<false>(place, place.cols / 2, column_of, lower);
    const auto high = value_elsewhere<false>(place, place.cols / 2, column_of, upper);
    Strip<units> out;
    for_each<Strip<units>>([&](int u, int e) {
      out.at(u, e) = (place.first_col + e) % group < half ? low.at(u, e) : high.at(u, e);
    });
    return out;
  }
}

// The same where `lower` has the first `low` columns of every group, and `upper` the others.
template <int group, int low, int units, class Lower, class Upper>
FUSELINE_DEVICE Strip<units> concat_parts(const TilePlace<units>& place, Lower&& lower,
                                          Upper&& upper) {
  constexpr int high = group - low;
  constexpr bool together = low % vector_cols == 0 && high % vector_cols == 0;
  constexpr int last = low - (together ? vector_cols : 1);  // where a unit may begin
  const auto in_lower = [](int c) { return c / group * low + min_of(c % group, last); };
  const auto in_upper = [](int c) { return c / group * high + max_of(c % group - low, 0); };
  const auto a = value_elsewhere<together>(place, place.cols / group * low, in_lower, lower);
  const auto b = value_elsewhere<together>(place, place.cols / group * high, in_upper, upper);
  Strip<units> out;
  for_each<Strip<units>>([&](int u, int e) {
    out.at(u, e) = (place.first_col + e) % group < low ? a.at(u, e) : b.at(u, e);
  });
  return out;
}

// Sums over `count` adjacent groups of `width` columns; `value` computes a place of the wide
// operand, which has `count` times the columns.
template <int count, int width, int units, class Value>
FUSELINE_DEVICE Strip<units> head_sum(const TilePlace<units>& place, Value&& value) {
  Strip<units> out{};
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const auto column_of = [i](int c) { return (c / width * count + i) * width + c % width; };
    const Strip<units> x =
        value_elsewhere<width % vector_cols == 0>(place, place.cols * count, column_of, value);
    for_each<Strip<units>>([&](int u, int e) { out.at(u, e) += x.at(u, e); });
  }
  return out;
}

// What Op makes of every `group` columns of a row, at each of them; `value` computes a place.
template <class Op, int group, class Place, class Value>
FUSELINE_DEVICE Strip<Place::units> group_reduce(const Place& place, Value&& value) {
  constexpr bool together = group % vector_cols == 0;  // a unit lies in one group
  Strip<Place::units> out;
  for_each<Strip<Place::units>>([&](int u, int e) { out.at(u, e) = Op::start; });
#pragma unroll 1
  for (int i = 0; i < group; i += together ? vector_cols : 1) {
    const auto column_of = [i](int c) { return c / group * group + i; };
    const Strip<Place::units> x = value_elsewhere<together>(place, place.cols, column_of, value);
    if constexpr (together) {
      for_each<Strip<Place::units>>(
          [&](int u, int e) { out.at(u, 0) = Op::join(out.at(u, 0), Op::term(x.at(u, e))); });
    } else {
      for_each<Strip<Place::units>>(
          [&](int u, int e) { out.at(u, e) = Op::join(out.at(u, e), Op::term(x.at(u, e))); });
    }
  }
  if constexpr (together)
    for_each<Strip<Place::units>>([&](int u, int e) { out.at(u, e) = out.at(u, 0); });
  return out;
}

// Row v of the result is the sum of the rows m of `from` with ids[m] = v, in the order of m. All
// lanes of a warp must be at the same rows: they look at 32 ids at a time.
template <class T, bool aligned, class Ids, int units>
FUSELINE_DEVICE Strip<units> gather_sum(const Tile<T, aligned>& from, const Ids& ids,
                                        const TilePlace<units>& place) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Strip<units> out{};
  for (int first = 0; first < from.rows; first += 32) {
    const int m = first + lane;
    const int id = m < from.rows ? static_cast<int>(ids.data[m * ids.step]) : -1;
#pragma unroll
    for (int u = 0; u < units; ++u) {
      u32 found = __ballot_sync(0xffffffffU, id == place.row(u));
      for (; found != 0; found &= found - 1) {
        TilePlace<1> there{first + __ffs(static_cast<int>(found)) - 1, 1, place.first_col,
                           from.rows, from.cols};
        const Strip<1> x = load_tile(from, there);
#pragma unroll
        for (int e = 0; e < vector_cols; ++e) out.v[u][e] += x.v[0][e];
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
    for_each<Strip<units>>([&](int u, int e) {
      if (place.row(u) < period) out.at(u, e) += x.at(u, e);
    });
  }
  return out;
}

// 1 in column ids[row], 0 elsewhere.
template <class Ids, class Place>
FUSELINE_DEVICE Strip<Place::units> one_hot(const Ids& ids, const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int id = id_of(ids, place, u);
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) out.v[u][e] = place.col(u) + e == id ? 1.0F : 0.0F;
  }
  return out;
}

// Which keys a query sees: rows are (b · heads + h) · tokens + t, columns are keys; query t sees
// keys up to first_end + t · step, and no more than `window` of them (0: any number).
struct Visible {
  int tokens, first_end, step, window;
};
// What is hidden becomes -infinity.
template <class Place>
FUSELINE_DEVICE Strip<Place::units> mask(const Strip<Place::units>& x, const Visible& visible,
                                         const Place& place) {
  Strip<Place::units> out;
#pragma unroll
  for (int u = 0; u < Place::units; ++u) {
    const int end = visible.first_end + place.row(u) % visible.tokens * visible.step;
    const int begin = visible.window > 0 ? end - visible.window : 0;
#pragma unroll
    for (int e = 0; e < vector_cols; ++e) {
      const int key = place.col(u) + e;
      out.v[u][e] = key >= begin && key < end ? x.v[u][e] : negative_infinity;
    }
  }
  return out;
}

}  // namespace fuseline::gpu::stream
