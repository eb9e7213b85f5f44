// Vectors and tables straight from global memory: row vectors (one number per row; 8 rows and so 8
// addresses per warp), and cos/sin tables addressed by (row mod T, column mod d).
#pragma once

#include "../element.cuh"
#include "place.cuh"

namespace fuseline::gpu {

// Row m's number is data[m · ld]: a column of a matrix with ld columns.
template <class T>
struct RowsIn {
  const T* data;
  int ld;
};
template <class T>
struct RowsOut {
  T* data;
  int ld;
};

// Rows past the end get 0.
template <class T, class Place>
FUSELINE_DEVICE RowVector load_rows(const RowsIn<T>& from, const Place& place) {
  const int lane = threadIdx.x % 32;
  RowVector out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = place.row + fragment_row(lane, half);
    out.v[half] =
        row < place.rows ? to_float(from.data[static_cast<long long>(row) * from.ld]) : 0.0F;
  }
  return out;
}

// Number ids[row] of a matrix of `cols` columns, counted row by row.
template <int cols, class T, class Ids, class Place>
FUSELINE_DEVICE RowVector load_numbers(const RowsIn<T>& from, const RowsIn<Ids>& ids,
                                       const Place& place) {
  const RowVector id = load_rows(ids, place);
  const int lane = threadIdx.x % 32;
  RowVector out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = static_cast<int>(id.v[half]);
    const bool exists = place.row + fragment_row(lane, half) < place.rows;
    out.v[half] =
        exists ? to_float(from.data[static_cast<long long>(i / cols) * from.ld + i % cols]) : 0.0F;
  }
  return out;
}

// The sum of numbers first, first + every, ... of the `cols` that every row has. The four lanes of
// a row take a quarter of them each; `cols` is a whole number of `every`.
template <int cols, int every, int first, class T, class Place>
FUSELINE_DEVICE RowVector load_row_sums(const RowsIn<T>& from, const Place& place) {
  const int lane = threadIdx.x % 32;
  RowVector out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = place.row + fragment_row(lane, half);
    const T* numbers = from.data + static_cast<long long>(row) * from.ld;
    float sum = 0.0F;
    if (row < place.rows) {
#pragma unroll 8
      for (int c = first + every * (lane % 4); c < cols; c += every * 4)
        sum += to_float(numbers[c]);
    }
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    sum += __shfl_xor_sync(0xffffffffU, sum, 2);
    out.v[half] = sum;
  }
  return out;
}

template <class T, class Place>
FUSELINE_DEVICE void store_rows(const RowsOut<T>& to, const Place& place, const RowVector& value) {
  const int lane = threadIdx.x % 32;
  if (lane % 4 != 0) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = place.row + fragment_row(lane, half);
    if (row < place.rows)
      to.data[static_cast<long long>(row) * to.ld] = from_float<T>(value.v[half]);
  }
}

// One number for every group of columns: column c of row m goes to column c / group of row
// m / run · step + m mod run, behind `data`.
template <class T>
struct GroupsOut {
  T* data;
  int ld;
  int run, step;
};

// All columns of a group have its number; the thread that has the first one stores it.
template <int group, class T, class Slab, int groups>
FUSELINE_DEVICE void store_groups(const GroupsOut<T>& to, const Slab& place,
                                  const Fragment<2, groups>& value) {
  const int lane = threadIdx.x % 32;
  for_each_element<Fragment<2, groups>>([&](int half, int g, int e) {
    const int row = place.row + fragment_row(lane, half);
    const int col = place.col + fragment_col(2, lane, g, e);
    if (col % group != 0 || col < 0 || col >= place.cols || row >= place.rows) return;
    const long long to_row = static_cast<long long>(row / to.run) * to.step + row % to.run;
    to.data[to_row * to.ld + col / group] = from_float<T>(value.at(half, g, e));
  });
}

// A [period, cols] table: element (m mod period, n mod cols) belongs to element (m, n). `cols` is
// the distance between rows, an even number.
template <class T>
struct TableIn {
  const T* data;
  int period;
  int cols;
};

// Where this thread's two rows stand in the table. A warp has 16 rows, so that one division says it
// for both: the second subtracts the period at most once, unless the period is shorter than that.
template <class T, class Slab>
FUSELINE_DEVICE void rows_of_table(const T* (&rows)[2], const TableIn<T>& from, const Slab& place,
                                   int before) {
  const int lane = threadIdx.x % 32;
  const int top = min_of(place.row, place.rows - 1);
  const int first = (before + top) % from.period;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    int row = first + min_of(place.row + fragment_row(lane, half), place.rows - 1) - top;
    if (row >= from.period) row = from.period >= 16 ? row - from.period : row % from.period;
    rows[half] = from.data + static_cast<long long>(row) * from.cols;
  }
}

// Four words of each lane in a quad, turned: word g of lane j becomes word j of lane g.
FUSELINE_DEVICE void transpose_quad(u32 (&w)[4]) {
  const bool odd = threadIdx.x % 2 != 0, high = threadIdx.x / 2 % 2 != 0;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const u32 got = __shfl_xor_sync(0xffffffffU, odd ? w[i] : w[i + 1], 1);
    (odd ? w[i] : w[i + 1]) = got;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 got = __shfl_xor_sync(0xffffffffU, high ? w[i] : w[i + 2], 2);
    (high ? w[i] : w[i + 2]) = got;
  }
}

// The table's row of the first row of product `place.result`. `batched`: results of a batch stand
// below each other, so that the table may have rows of several.
template <bool batched, class T, class Slab>
FUSELINE_DEVICE int rows_before(const TableIn<T>& from, const Slab& place) {
  return batched ? static_cast<int>(static_cast<long long>(place.result) * place.rows % from.period)
                 : 0;
}

// `cols`: the table's; a remainder by a constant takes few instructions.
template <bool batched, int cols, class T, class Slab>
FUSELINE_DEVICE Fragment<2, Slab::groups> load_table(const TableIn<T>& from, const Slab& place) {
  const int lane = threadIdx.x % 32;
  Fragment<2, Slab::groups> out;
  const T* rows[2];
  rows_of_table(rows, from, place, rows_before<batched>(from, place));
#pragma unroll
  for (int group = 0; group < Slab::groups; ++group) {
    const int col = table_col<cols>(max_of(place.col + fragment_col(2, lane, group, 0), 0));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if constexpr (sizeof(T) == 2) {
        const FloatPair pair = unpack<T>(__ldg(reinterpret_cast<const u32*>(rows[half] + col)));
        out.at(half, group, 0) = pair.low;
        out.at(half, group, 1) = pair.high;
      } else {
        const float2 pair = __ldg(reinterpret_cast<const float2*>(rows[half] + col));
        out.at(half, group, 0) = pair.x;
        out.at(half, group, 1) = pair.y;
      }
    }
  }
  return out;
}

// The same where the table's rows begin at multiples of 16 bytes and slabs at multiples of 8
// columns. A lane loads 8 columns of one group and shares them with its quad: a load of two columns
// in a lane meets eight cache lines in a warp for 128 bytes, and there would be four times as many.
// Loading is apart from sharing, so that something else can be done while the vectors are on their
// way (run.cuh).
template <int groups>
struct TableVectors {
  uint4 v[groups / 4][2];  // of both of the lane's rows, in one of four groups
};
template <bool batched, int cols, class T, class Slab>
FUSELINE_DEVICE TableVectors<Slab::groups> load_table_vectors(const TableIn<T>& from,
                                                              const Slab& place) {
  static_assert(sizeof(T) == 2 && cols > 0 && cols % 8 == 0 && Slab::groups % 4 == 0);
  const int lane = threadIdx.x % 32;
  const T* rows[2];
  rows_of_table(rows, from, place, rows_before<batched>(from, place));
  TableVectors<Slab::groups> out;
#pragma unroll
  for (int four = 0; four < Slab::groups / 4; ++four) {
    const int col = max_of(place.col + 8 * (4 * four + lane % 4), 0) % cols;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      out.v[four][half] = __ldg(reinterpret_cast<const uint4*>(rows[half] + col));
  }
  return out;
}
template <class T, int groups>
FUSELINE_DEVICE Fragment<2, groups> table_of(const TableVectors<groups>& loaded) {
  Fragment<2, groups> out;
#pragma unroll
  for (int four = 0; four < groups / 4; ++four) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 vector = loaded.v[four][half];
      u32 words[4] = {vector.x, vector.y, vector.z, vector.w};
      transpose_quad(words);
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        const FloatPair pair = unpack<T>(words[g]);
        out.at(half, 4 * four + g, 0) = pair.low;
        out.at(half, 4 * four + g, 1) = pair.high;
      }
    }
  }
  return out;
}

// What an epilogue's `run` gets for vectors: those that `early` has loaded, or nothing, and then it
// loads them where it wants them.
template <int groups>
struct EarlyVectors {
  TableVectors<groups> loaded;
  template <class F>
  FUSELINE_DEVICE const TableVectors<groups>& operator()(F&&) const {
    return loaded;
  }
};
struct LateVectors {
  template <class F>
  FUSELINE_DEVICE auto operator()(F&& load) const {
    return load();
  }
};

// One row for each sequence: row m takes row m / tokens. Its rows are few and many threads want
// them, so they come from cache. `pairs`: data is a multiple of two elements, as ld always is.
template <class T, bool pairs = true>
struct SequenceIn {
  const T* data;
  int ld;
  int tokens;
};
template <int each, class T, bool pairs, class Slab>
FUSELINE_DEVICE Fragment<each, Slab::groups> load_sequence(const SequenceIn<T, pairs>& from,
                                                           const Slab& place) {
  const int lane = threadIdx.x % 32;
  const int first = place.template first_col<each>();
  const int width = place.template width<each>();
  Fragment<each, Slab::groups> out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min_of(place.row + fragment_row(lane, half), place.rows - 1);
    const T* data = from.data + static_cast<long long>(row / from.tokens) * from.ld;
#pragma unroll
    for (int group = 0; group < Slab::groups; ++group) {
#pragma unroll
      for (int e = 0; e < each; ++e) {
        const int col = first + fragment_col(each, lane, group, e);
        const bool exists = col >= 0 && col < width;
        if constexpr (pairs && each % 2 == 0 && sizeof(T) == 2) {
          if (e % 2 != 0) continue;
          const u32 word = exists ? __ldg(reinterpret_cast<const u32*>(data + col)) : 0U;
          const FloatPair pair = unpack<T>(word);
          out.at(half, group, e) = pair.low;
          out.at(half, group, e + 1) = pair.high;
        } else {
          out.at(half, group, e) = exists ? to_float(data[col]) : 0.0F;
        }
      }
    }
  }
  return out;
}

// Number i of a row at all of its columns [i · group, (i + 1) · group). Groups begin where slabs or
// parts do, so that a slab whose columns divide the group has one number of each row.
template <int each, int group, class T, class Slab>
FUSELINE_DEVICE Fragment<each, Slab::groups> load_groups(const RowsIn<T>& from, const Slab& place) {
  constexpr bool one = group % (4 * each * Slab::groups) == 0;
  const int lane = threadIdx.x % 32;
  const int first = place.template first_col<each>();
  const int width = place.template width<each>();
  Fragment<each, Slab::groups> out;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = min_of(place.row + fragment_row(lane, half), place.rows - 1);
    const T* data = from.data + static_cast<long long>(row) * from.ld;
    float number = 0.0F;
    if constexpr (one) number = first >= 0 && first < width ? to_float(data[first / group]) : 0.0F;
#pragma unroll
    for (int g = 0; g < Slab::groups; ++g) {
#pragma unroll
      for (int e = 0; e < each; ++e) {
        if constexpr (!one) {
          const int col = first + fragment_col(each, lane, g, e);
          number = col >= 0 && col < width ? to_float(data[col / group]) : 0.0F;
        }
        out.at(half, g, e) = number;
      }
    }
  }
  return out;
}

// A table that begins again after `period` columns and has fewer: `rest` stands in the others. All
// are even, so a thread's two columns are neighbours in the table or both beyond it.
template <int period, class T, class Slab>
FUSELINE_DEVICE Fragment<2, Slab::groups> load_table_part(const TableIn<T>& from, const Slab& place,
                                                          float rest) {
  const int lane = threadIdx.x % 32;
  Fragment<2, Slab::groups> out;
  const T* rows[2];
  rows_of_table(rows, from, place, 0);
#pragma unroll
  for (int group = 0; group < Slab::groups; ++group) {
    const int col = max_of(place.col + fragment_col(2, lane, group, 0), 0) % period;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      out.at(half, group, 0) = col < from.cols ? to_float(rows[half][col]) : rest;
      out.at(half, group, 1) = col < from.cols ? to_float(rows[half][col + 1]) : rest;
    }
  }
  return out;
}

}  // namespace fuseline::gpu
