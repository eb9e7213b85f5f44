// What one thread holds of a slab: 16 rows (of its warp) and up to 64 columns of the accumulator.
//
// Both tensor-core mainloops (mma.sync and wgmma) give lane l of a warp rows l/4 and l/4 + 8, and
// of every 8 columns the two at 2 (l mod 4). A pair map halves or doubles the columns, so a thread
// has `each` = 1, 2 or 4 neighbouring columns of every group of 4 · each:
//
//   each = 2, one group:   lane 0: c0 c1 | lane 1: c2 c3 | lane 2: c4 c5 | lane 3: c6 c7     row 0
//                          lane 4: ...                                                       row 1
//   column(lane, group, e) = each · (4 · group + lane mod 4) + e
//
// A slab has 8 groups, or 4 if the epilogue asks for narrow slabs (its values would not fit the
// registers otherwise). Values are fp32 in registers; indexes are constants after unrolling.
#pragma once

#include "host_device.cuh"

namespace fuseline::gpu {

constexpr int slab_cols = 64;  // accumulator columns whose loads share a stage of the ring

// Row of the warp's 16 that (lane, half) holds.
FUSELINE_HD constexpr int fragment_row(int lane, int half) { return lane / 4 + 8 * half; }
// Column of the slab's 32 · each that (lane, group, e) holds.
FUSELINE_HD constexpr int fragment_col(int each, int lane, int group, int e) {
  return each * (4 * group + lane % 4) + e;
}

// Of a table whose `cols` columns repeat, the column that belongs to a thread's columns col and
// col + 1; col is even. A table of an odd number of columns is as wide as the product: what is
// beyond it in the last tile is stored nowhere, and the remainder there would be an odd column, at
// which no pair of numbers may be loaded.
template <int cols>
FUSELINE_HD constexpr int table_col(int col) {
  return cols % 2 == 0 ? col % cols : min_of(col, cols - 1);
}

// A tile value: 16 rows, 4 · each · groups columns.
template <int each_, int groups_ = 8>
struct Fragment {
  static constexpr int each = each_, groups = groups_;
  static constexpr bool per_row = true, per_col = true;
  static constexpr int cols = 4 * each * groups;
  float v[2 * groups * each];
  FUSELINE_HD float& at(int half, int group, int e) { return v[(2 * group + half) * each + e]; }
  FUSELINE_HD float at(int half, int group, int e) const {
    return v[(2 * group + half) * each + e];
  }
};

// One number per row, broadcast over the columns.
struct RowVector {
  static constexpr int each = 0, groups = 0;  // fits any
  static constexpr bool per_row = true, per_col = false;
  float v[2];
  FUSELINE_HD float& at(int half, int, int) { return v[half]; }
  FUSELINE_HD float at(int half, int, int) const { return v[half]; }
};

// One number per column, broadcast over the rows.
template <int each_, int groups_ = 8>
struct ColVector {
  static constexpr int each = each_, groups = groups_;
  static constexpr bool per_row = false, per_col = true;
  float v[groups * each];
  FUSELINE_HD float& at(int, int group, int e) { return v[group * each + e]; }
  FUSELINE_HD float at(int, int group, int e) const { return v[group * each + e]; }
};

// One number.
struct Scalar {
  static constexpr int each = 0, groups = 0;
  static constexpr bool per_row = false, per_col = false;
  float v;
  FUSELINE_HD float& at(int, int, int) { return v; }
  FUSELINE_HD float at(int, int, int) const { return v; }
};

// The form of a value that depends on rows and columns as stated.
template <int each, int groups, bool per_row, bool per_col>
struct FormOf {
  using type = Fragment<each, groups>;
};
template <int each, int groups>
struct FormOf<each, groups, true, false> {
  using type = RowVector;
};
template <int each, int groups>
struct FormOf<each, groups, false, true> {
  using type = ColVector<each, groups>;
};
template <int each, int groups>
struct FormOf<each, groups, false, false> {
  using type = Scalar;
};

// Calls f(half, group, e) for every element that a thread holds of a value of this form.
template <class Form, class F>
FUSELINE_HD void for_each_element(F&& f) {
  constexpr int halves = Form::per_row ? 2 : 1;
  constexpr int groups = Form::per_col ? Form::groups : 1;
  constexpr int each = Form::per_col ? Form::each : 1;
  FUSELINE_UNROLL
  for (int group = 0; group < groups; ++group) FUSELINE_UNROLL
  for (int half = 0; half < halves; ++half) FUSELINE_UNROLL
  for (int e = 0; e < each; ++e) f(half, group, e);
}

}  // namespace fuseline::gpu
