// Epilogues that the benchmarks and checks run, written as the generator writes them.
#pragma once

#include "../kernels/epilogue/log_sum_exp.cuh"
#include "../kernels/epilogue/pair.cuh"
#include "../kernels/epilogue/plain.cuh"
#include "../kernels/epilogue/reduce.cuh"
#include "../kernels/epilogue/vector.cuh"
#include "../kernels/gemm_sm90.cuh"

namespace fuseline::bench {

using namespace fuseline::gpu;  // the words of the contract

// h = x + r ∘ y; store h; partial sums of h².
template <class T>
struct ResidualScaleSquares {
  struct Params {
    TileIn<T, 0> x;
    RowsIn<float> r;
    TileOut<T> h;
    Partials s;
  };
  struct State {
    RowVector r;
    RowState<SumSquares> s;
  };
  static constexpr int tile_loads = 1, col_loads = 0, scratch_bytes = 0, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {
    f(p.x);
  }
  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& rows) {
    state.r = load_rows(p.r, rows);
  }
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    const auto y1 = mul(y, state.r);
    const auto x = load_tile(p.x, slab);
    const auto h = add(y1, x);
    store_tile(p.h, slab, h);
    reduce_rows(slab, p.s, state.s, h);
  }
};

// y1 = y + bias; store y1 in fp32; store gelu(y1). A column vector in each type.
template <class T>
struct BiasGelu {
  struct Params {
    ColsIn<T, 0> b;
    ColsIn<float, 1> b2;
    TileOut<float> y1;
    TileOut<T> o;
  };
  struct State {};
  static constexpr int tile_loads = 0, col_loads = 2, scratch_bytes = 0, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {
    f(p.b);
    f(p.b2);
  }
  static FUSELINE_DEVICE void begin(const Params&, State&, const SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Slab& slab, const Tile& y) {
    const auto b = load_cols(p.b, slab);
    const auto b2 = load_cols(p.b2, slab);
    const auto b3 = add(b, b2);
    const auto y1 = add(y, b3);
    store_tile(p.y1, slab, y1);
    const auto o = gelu_tanh(y1);
    store_tile(p.o, slab, o);
  }
};

// Columns [0, split) are rotated, the rest is stored as it is.
template <class T>
struct RopePart {
  struct Params {
    RowsIn<float> r;
    TableIn<T> cos, sin;
    TileOut<T> rotated, rest;
    int split, cols;
  };
  struct State {
    RowVector r;
  };
  static constexpr int tile_loads = 0, col_loads = 0, scratch_bytes = 0, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& rows) {
    state.r = load_rows(p.r, rows);
  }
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    const auto y1 = mul(y, state.r);
    if (const auto part = columns(slab, p.split, p.cols - p.split); meets(part)) {
      store_tile(p.rest, part, y1);
    }
    if (const auto part = columns(slab, 0, p.split); meets(part)) {
      const auto cos = load_table(p.cos, part);
      const auto sin = load_table(p.sin, part);
      const auto rot = rope(y1, cos, sin);
      store_tile(p.rotated, part, rot);
    }
  }
};

// o = swiglu(r ∘ y pairs), half as wide; the pairs are stored too; the largest of each 128 columns.
template <class T>
struct Swiglu {
  struct Params {
    RowsIn<float> r;
    TileOut<T> pairs, o;
    Partials top;
  };
  struct State {
    RowVector r;
    RowState<Max> top;
  };
  static constexpr int tile_loads = 0, col_loads = 0, scratch_bytes = 0, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& rows) {
    state.r = load_rows(p.r, rows);
  }
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    const auto y1 = mul(y, state.r);
    store_tile(p.pairs, slab, y1);
    reduce_rows(slab, p.top, state.top, y1);
    const auto o = swiglu(y1);
    store_tile(p.o, slab, o);
  }
};

// SwiGLU's gradient: loads and stores tiles twice as wide; partial sums of (pairs ∘ gradient).
// Slabs are narrow, or its values would not fit the registers.
template <class T>
struct SwigluBackward {
  struct Params {
    TileIn<T, 0, 4> gu;
    TileOut<T> dgu, again;
    Partials dots;
  };
  struct State {
    RowState<Sum> dots;
  };
  static constexpr int tile_loads = 2, col_loads = 0, scratch_bytes = 0, slab_groups = 4;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {
    f(p.gu);
  }
  static FUSELINE_DEVICE void begin(const Params&, State&, const SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    const auto gu = load_tile(p.gu, slab);
    const auto [dgu, again] = swiglu_backward(gu, y);
    const auto q = mul(dgu, gu);
    reduce_rows(slab, p.dots, state.dots, q);
    store_tile(p.again, slab, again);
    store_tile(p.dgu, slab, dgu);
  }
};

// RMSNorm's gradient: two tiles, a column vector and two row vectors in; two tiles and column
// partials out; the result is added to what the memory holds.
template <class T>
struct NormBackward {
  struct Params {
    TileIn<T, 0> h;
    TileIn<T, 1> dy;
    ColsIn<T, 0> g;
    RowsIn<float> r, c;
    TileOut<T> hn, dres;
    Partials dg;
  };
  struct State {
    RowVector r, c;
  };
  static constexpr int tile_loads = 2, col_loads = 1, scratch_bytes = 2048, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params& p, F&& f) {
    f(p.h);
    f(p.dy);
    f(p.g);
  }
  static FUSELINE_DEVICE void begin(const Params& p, State& state, const SlabPlace& rows) {
    state.r = load_rows(p.r, rows);
    state.c = load_rows(p.c, rows);
  }
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    const auto h = load_tile(p.h, slab);
    const auto z = mul(h, state.r);
    const auto g = load_cols(p.g, slab);
    const auto hn = mul(z, g);
    store_tile(p.hn, slab, hn);
    const auto q = mul(y, z);
    reduce_cols<Sum>(slab, p.dg, q);
    const auto pg = mul(y, g);
    const auto zc = mul(z, state.c);
    const auto d = sub(pg, zc);
    const auto dh = mul(d, state.r);
    const auto dy = load_tile(p.dy, slab);
    const auto dres = add(dy, dh);
    accumulate_tile(p.dres, slab, dres);
  }
};

// Sum and sum of squares of rows, sum of squares of columns, and the LM head's log-sum-exp with
// target select. Stores nothing else.
template <class T>
struct Statistics {
  struct Params {
    Partials moments, lse, cols;
    RowsIn<int> targets;
  };
  struct State {
    RowState<Sum> sum;
    RowState<SumSquares> squares;
    LogSumExpState lse;
  };
  static constexpr int tile_loads = 0, col_loads = 0, scratch_bytes = 2048, slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params&, State&, const SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Slab& slab, const Tile& y) {
    reduce_rows(slab, p.moments, state.sum, state.squares, y, y);
    reduce_cols<SumSquares>(slab, p.cols, y);
    online_log_sum_exp(slab, p.lse, p.targets, state.lse, y);
  }
};

}  // namespace fuseline::bench
