// A causal convolution along the tokens of each sequence, every column by itself, and its
// gradients. A thread loads the rows that its window reaches back (or ahead) to; those of its
// neighbours it finds in L1.
#pragma once

#include "reduce.cuh"

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

// The gradient of its operand: Σ_j weight[j] · dy[row + (taps - 1) - j]; rows behind a sequence
// are 0.
template <int taps, class T, bool aligned, class W, bool w_aligned, class Place>
FUSELINE_DEVICE Strip<Place::units> convolve_back(const Tile<T, aligned>& dy,
                                                  const Tile<W, w_aligned>& weight, int tokens,
                                                  const Place& place) {
  Strip<Place::units> sum{};
#pragma unroll
  for (int j = 0; j < taps; ++j)
    add_tap(sum, load_tile(dy, rows_below(place, tokens, taps - 1 - j)),
            load_tap(weight, j, place));
  return sum;
}

// The gradient of one tap, on the way down the columns: Σ dy[row] · x[row - back] of the rows that
// a sequence has. `value` computes x at a place.
template <int back, int units, class Value>
FUSELINE_DEVICE void gather_tap(ColumnState<Sum>& state, const Strip<units>& dy, int tokens,
                                const TilePlace<units>& place, Value&& value) {
  const auto above = rows_above(place, tokens, back);
  const Strip<units> x = value(above);
#pragma unroll
  for (int u = 0; u < units; ++u)
    if (above.holds(u) && place.row(u) < place.rows)
#pragma unroll
      for (int e = 0; e < vector_cols; ++e) state.v[e] += dy.v[u][e] * x.v[u][e];
}

}  // namespace fuseline::gpu::stream
