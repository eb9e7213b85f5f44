// What one thread holds of a stream's or a row's values: fp32 in registers, 8 neighbouring columns
// (16 bytes of a 16-bit tensor) at each of several places, its units. In a stream the units are
// rows below each other, in a row mainloop they are parts of one row:
//
//   stream, 3 units:   ........ <- unit 0        row, 3 units:   ........  ........  ........
//                      ........ <- unit 1                        unit 0    unit 1    unit 2
//                      ........ <- unit 2
//
// Several units are several independent loads under way. A vector along rows is one number per
// unit of a stream, one in all of a row; a vector along columns the other way round.
#pragma once

#include "../host_device.cuh"

namespace fuseline::gpu::stream {

constexpr int vector_cols = 8;

// A tile's value. Twice or half as many columns as the space: pairs before or after a pair map.
template <int units_, int width_ = vector_cols>
struct Strip {
  static constexpr int units = units_, width = width_;
  static constexpr bool per_row = true, per_col = true;
  float v[units][width];
  FUSELINE_HD float& at(int u, int e) { return v[u][e]; }
  FUSELINE_HD float at(int u, int e) const { return v[u][e]; }
};
// One number per row.
template <int units_>
struct PerRow {
  static constexpr int units = units_, width = 1;
  static constexpr bool per_row = true, per_col = false;
  float v[units];
  FUSELINE_HD float& at(int u, int) { return v[units == 1 ? 0 : u]; }
  FUSELINE_HD float at(int u, int) const { return v[units == 1 ? 0 : u]; }
};
// One number per column.
template <int units_, int width_ = vector_cols>
struct PerCol {
  static constexpr int units = units_, width = width_;
  static constexpr bool per_row = false, per_col = true;
  float v[units][width];
  FUSELINE_HD float& at(int u, int e) { return v[units == 1 ? 0 : u][e]; }
  FUSELINE_HD float at(int u, int e) const { return v[units == 1 ? 0 : u][e]; }
};

template <int units, int width, bool per_row, bool per_col>
struct FormOf {
  using type = Strip<units, width>;
};
template <int units, int width>
struct FormOf<units, width, true, false> {
  using type = PerRow<units>;
};
template <int units, int width>
struct FormOf<units, width, false, true> {
  using type = PerCol<units, width>;
};

// Calls f(unit, e) for all that a value holds.
template <class Form, class F>
FUSELINE_HD void for_each(F&& f) {
#pragma unroll
  for (int u = 0; u < Form::units; ++u)
#pragma unroll
    for (int e = 0; e < Form::width; ++e) f(u, e);
}

}  // namespace fuseline::gpu::stream
