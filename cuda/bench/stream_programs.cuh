// Programs of streams and rows as the generator writes them, by hand: the examples of
// kernels/stream/README.md.
#pragma once

#include "../kernels/stream/mainloop.cuh"

// Inside gpu::stream, so that add, mul, ... are the streams' maps and not the epilogues'.
namespace fuseline::gpu::stream::programs {

using Element = bf16;

//  copy:  for each tile
//    x = load x
//    store y = x
template <bool aligned = true>
struct Copy {
  static constexpr int units = 4, distance = 0;
  struct Params {
    Tile<Element, aligned> x, y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = load_tile(p.x, place);
    store_tile(p.y, place, x);
  }
};

//  residual1:  for each tile
//    o = load o
//    x = load x
//    h = o + x
//    store h = h
template <bool aligned = true>
struct ResidualAdd {
  static constexpr int units = 4, distance = 0;
  struct Params {
    Tile<Element, aligned> o, x, h;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto o = load_tile(p.o, place);
    const auto x = load_tile(p.x, place);
    const auto h = add(o, x);
    store_tile(p.h, place, h);
  }
};

//  norm1:  for each row
//    x = load x
//    s = row_sum_squares(x)
//    m = s * 1/D,  m1 = m + eps,  r = rsqrt(m1)
//    xr = x * r
//    g = load_cols w
//    xn = xr * g
//    store y = xn
template <int cols, bool aligned = true>
struct RmsNorm {
  static constexpr int threads = cols <= 256 ? 32 : cols <= 4096 ? 128 : 256, inner_rows = 0;
  static constexpr int units = (cols + 8 * threads - 1) / (8 * threads);
  struct Params {
    Tile<Element, aligned> x;
    Cols<const Element, aligned> w;
    Tile<Element, aligned> y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = load_tile(p.x, place);
    const auto s = row_reduce<SumSquares, threads>(x, place);
    const auto m = scale_by_constant(s, 1.0F / cols);
    const auto m1 = add_constant(m, 1e-5F);
    const auto r = rsqrt(m1);
    const auto xr = mul(x, r);
    const auto g = load_cols(p.w, place);
    const auto xn = mul(xr, g);
    store_tile(p.y, place, xn);
  }
};

//  rope_qk:  for each tile
//    qkv = load qkv
//    cos = load_table cos,  sin = load_table sin
//    rot = rope(qkv pairs, cos, sin)          columns d / 2 apart
//    store y = rot
template <int d>
struct RopeHalves {
  static constexpr int units = 2, distance = d / 2;
  struct Params {
    Tile<Element> x;
    Table<Element> cos, sin;
    Tile<Element> y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = load_tile(p.x, place);
    const auto cos = load_table(p.cos, place);
    const auto sin = load_table(p.sin, place);
    const auto rot = rope<false>(x, cos, sin);
    store_tile(p.y, place, rot);
  }
};

//  swiglu:  for each tile
//    gate = load gu[:, 0:F],  up = load gu[:, F:2F]
//    t = silu(gate)
//    o = t * up
//    store act = o
template <bool aligned = true>
struct Swiglu {
  static constexpr int units = 4, distance = 0;
  struct Params {
    Tile<Element, aligned> gate, up, y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto gate = load_tile(p.gate, place);
    const auto up = load_tile(p.up, place);
    const auto t = silu(gate);
    const auto o = mul(t, up);
    store_tile(p.y, place, o);
  }
};

//  dw_norm:  for each tile, whole columns
//    d = load d,  h = load h,  r = load_rows r
//    z = h * r,  p = d * z
//    dg = column_sum(p)
//    store_cols dw = dg
template <bool aligned = true>
struct NormWeightGradient {
  static constexpr int units = aligned ? 2 : 1, threads = 1024, lanes = 4, inner_rows = 0;
  struct Params {
    Tile<Element, aligned> d, h;
    Rows<const float> r;
    Cols<float, aligned> dw;
  };
  struct State {
    ColumnState<Sum> dg;
  };
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Place& place) {
    const auto d = load_tile(p.d, place);
    const auto h = load_tile(p.h, place);
    const auto r = load_rows(p.r, place);
    const auto z = mul(h, r);
    const auto q = mul(d, z);
    gather_columns(state.dg, q, place);
  }
  template <class Place>
  static FUSELINE_DEVICE void finish(const Params& p, State& state, const Place& place, int) {
    const auto dg = column_result<lanes, threads>(state.dg);
    store_cols(p.dw, place, dg);
  }
};

//  d_dot:  for each row of [B·H·T, d], heads side by side
//    a = load dattn,  b = load attn
//    p = a * b
//    delta = row_sum(p)
//    store_rows delta = delta
template <int d>
struct HeadDots {
  static constexpr int threads = d / 8, inner_rows = 0;
  static constexpr int units = 1;
  struct Params {
    Tile<Element> a, b;
    Rows<float> delta;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto a = load_tile(p.a, place);
    const auto b = load_tile(p.b, place);
    const auto q = mul(a, b);
    const auto delta = row_reduce<Sum, threads>(q, place);
    store_rows(p.delta, place, delta);
  }
};

//  concat:  for each tile
//    n = load n[M, N/2]
//    x1 = load_halves x                       lower half of every d columns
//    y = concat(n, x1)
//    store y = y;  sum of squares of every 128 columns
template <int d>
struct ConcatHalves {
  static constexpr int units = 2, distance = 0;
  struct Params {
    Tile<Element> n, x, y;
    Partials squares;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto y = concat_halves<d>(
        place, [&](const auto& half) { return load_tile(p.n, half); },
        [&](const auto& half) { return load_halves<d, false>(p.x, half); });
    store_tile(p.y, place, y);
    reduce_row_blocks<SumSquares>(p.squares, 0, 1, place, y);
  }
};

}  // namespace fuseline::gpu::stream::programs
