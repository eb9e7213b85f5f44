// A causal convolution along the tokens of each sequence, every column by itself. A thread loads
// the rows that its window reaches back to; those of its neighbours it finds in L1.
#pragma once

#include "memory.cuh"

namespace fuseline::gpu::stream {

template <class Form, class Weight>
FUSELINE_DEVICE void add_tap(Form& sum, const Form& x, const Weight& w) {
  for_each<Form>([&](int u, int e) { sum.at(u, e) += w.at(u, e) * x.at(u, e); });
}
// Row j of the weight, at the place's columns.
template <class T, bool aligned, class Place>
FUSELINE_DEVICE PerCol<Place::col_units> load_tap(const Tile<T, aligned>& weight, int j,
                                                  const Place& place) {
  return load_cols(Cols<T, aligned>{weight.at(j, 0)}, place);
}

// Σ_j weight[j] · from[row - (taps - 1) + j]; rows ahead of a sequence are 0.
template <int taps, class T, bool aligned, class W, bool w_aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> convolve_rows(const Tile<T, aligned>& from,
                                                  const Tile<W, w_aligned>& weight, int tokens,
                                                  const Place& place) {
  Strip<Place::units> sum{};
#pragma unroll
  for (int j = 0; j < taps; ++j)
    add_tap(sum, load_tile(from, rows_above(place, tokens, taps - 1 - j)),
            load_tap(weight, j, place));
  return sum;
}
// The same where `before` has the taps - 1 rows ahead of each sequence. What one of the two loads
// does not have is 0.
template <int taps, class T, bool aligned, class W, bool w_aligned, class B, bool b_aligned,
          class Place>
FUSELINE_DEVICE Strip<Place::units> convolve_rows(const Tile<T, aligned>& from,
                                                  const Tile<W, w_aligned>& weight,
                                                  const Tile<B, b_aligned>& before, int tokens,
                                                  const Place& place) {
  Strip<Place::units> sum{};
#pragma unroll
  for (int j = 0; j < taps; ++j) {
    const int back = taps - 1 - j;
    const auto w = load_tap(weight, j, place);
    add_tap(sum, load_tile(from, rows_above(place, tokens, back)), w);
    if (back > 0) add_tap(sum, load_tile(before, rows_ahead<taps - 1>(place, tokens, back)), w);
  }
  return sum;
}

}  // namespace fuseline::gpu::stream
