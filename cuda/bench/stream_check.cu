// Checks the primitives of streams that stream_bench.cu's programs do not use, each in a small
// program, odd sizes, outputs poisoned, against fp64 on the CPU.
//
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a -I. -o stream_check
//       cuda/bench/stream_check.cu && ./stream_check
#include "stream_launch.cuh"

namespace fuseline::gpu::stream::programs {

// Adjacent pairs: the operand has twice the columns of the space, the gradient too.
struct PairGradient {
  static constexpr int units = 2, distance = 0;
  struct Params {
    Tile<bf16> pairs, d, act, d_pairs, again;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto pairs = load_tile<16>(p.pairs, place);
    const auto d = load_tile(p.d, place);
    store_tile(p.act, place, swiglu(pairs));
    const auto g = swiglu_backward(pairs, d);
    store_tile(p.d_pairs, place, g.pairs);
    store_tile(p.again, place, g.again);
  }
};

// rope_inverse(rope(x)) with cos² + sin² = 1 in the angles gives x, for pairs at any distance.
template <int distance_>
struct RopeThereAndBack {
  static constexpr int units = 2, distance = distance_ == 1 ? 0 : distance_;
  struct Params {
    Tile<float> x;
    Table<float> cos, sin;
    Tile<float> y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = load_tile(p.x, place);
    const auto cos = load_table(p.cos, place);
    const auto sin = load_table(p.sin, place);
    store_tile(p.y, place,
               rope_inverse<distance_ == 1>(rope<distance_ == 1>(x, cos, sin), cos, sin));
  }
};

// Sums of 3 heads of 32 columns that share a key, added to rows of a cache.
struct HeadsToCache {
  static constexpr int units = 2, distance = 0;
  struct Params {
    Tile<bf16> x;
    Tile<float> cache;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto y = head_sum<3, 32>(place, [&](const auto& wide) { return load_tile(p.x, wide); });
    store_tile<true>(p.cache, place, y);
  }
};

// Rows of a table, less a 1 in one column; columns 16 to 40 only.
struct GatherLessOneHot {
  static constexpr int units = 2, distance = 0;
  struct Params {
    Tile<bf16> table;
    Rows<const int> ids;
    Tile<bf16> y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = load_tile(p.table, gather(place, p.ids));
    const auto y = sub(x, one_hot(p.ids, place));
    const auto part = columns(place, 16, 24);
    if (in_columns(part)) store_tile(p.y, part, y);
  }
};
struct GatherBack {
  static constexpr int units = 2, distance = 0;
  struct Params {
    Tile<bf16> from;
    Rows<const int> ids;
    int period;
    Tile<float> sum, period_sum;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    store_tile(p.sum, place, gather_sum(p.from, p.ids, place));
    store_tile(p.period_sum, place, period_sum(p.from, p.period, place));
  }
};

// Softmax of a row whose numbers are the upper ones of pairs (sums among moments), with a bias.
template <int cols>
struct RowSoftmax {
  static constexpr int threads = 16, units = ceil_div(cols, 8 * threads), inner_rows = 0;
  struct Params {
    Tile<float, false> x;
    Cols<float, false> bias;
    Rows<float> mean;
    Tile<float, false> y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    const auto x = add(load_tile(p.x, place), load_cols(p.bias, place));
    store_rows(p.mean, place, row_mean<threads>(x, place));
    const auto e = exp(sub(x, row_reduce<Max, threads>(x, place)));
    store_tile(p.y, place, mul(e, reciprocal(row_reduce<Sum, threads>(e, place))));
  }
};
struct UpperMoments {
  static constexpr int units = 1, distance = 0;
  struct Params {
    Tile<float, false> moments, y;
  };
  struct State {};
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Place& place) {
    store_tile(p.y, place, load_halves<2, true>(p.moments, place));
  }
};

// Partials of 128 rows of every column: sum and sum of squares.
struct ColumnPartials {
  static constexpr int units = 2, threads = 128, lanes = 4, inner_rows = 0;
  struct Params {
    Tile<bf16> x;
    Partials partial;
  };
  struct State {
    ColumnState<Sum> sum;
    ColumnState<SumSquares> squares;
  };
  template <class Place>
  static FUSELINE_DEVICE void run(const Params& p, State& state, const Place& place) {
    const auto x = load_tile(p.x, place);
    gather_columns(state.sum, x, place);
    gather_columns(state.squares, x, place);
  }
  template <class Place>
  static FUSELINE_DEVICE void finish(const Params& p, State& state, const Place& place, int block) {
    store_column_block(p.partial, 0, 2, block, place, column_result<lanes, threads>(state.sum));
    store_column_block(p.partial, 1, 2, block, place, column_result<lanes, threads>(state.squares));
  }
};

}  // namespace fuseline::gpu::stream::programs

namespace fuseline::bench {
namespace {

using namespace gpu::stream::programs;
using T = gpu::bf16;
constexpr double rounding = 2.5e-3;

void check_pairs(int rows, int cols) {
  const Matrix<T> pairs(rows, 2 * cols, 0, 1), d(rows, cols, 8, 2);
  const Matrix<T> act(rows, cols, 0, 0), d_pairs(rows, 2 * cols, 8, 0), again(rows, cols, 0, 0);
  launch_tiles<PairGradient>({pairs.tile(), d.tile(), act.tile(), d_pairs.tile(), again.tile()},
                             rows, cols, {});
  const auto x = pairs.values(), dy = d.values();
  std::vector<double> y(dy.size()), dx(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double gate = x[2 * i], up = x[2 * i + 1], s = 1 / (1 + std::exp(-gate));
    y[i] = gate * s * up;
    dx[2 * i] = dy[i] * up * (s + gate * s * (1 - s));
    dx[2 * i + 1] = dy[i] * gate * s;
  }
  compare("swiglu of pairs", act.values(), y, rounding);
  compare("swiglu_backward of pairs", d_pairs.values(), dx, rounding);
  compare("swiglu again", again.values(), y, rounding);
}

template <int distance>
void check_rope_back(int rows, int groups) {
  const int d = distance == 1 ? 32 : 2 * distance, cols = groups * d, period = 7;
  const Matrix<float> x(rows, cols, 0, 3), y(rows, cols, 0, 0);
  std::vector<float> cos, sin;
  for (int i = 0; i < period * d; ++i) {
    // The same angle at both columns of a pair.
    const int pair = distance == 1 ? i / 2 : i / d * distance + i % distance;
    cos.push_back(std::cos(0.7F * static_cast<float>(pair)));
    sin.push_back(std::sin(0.7F * static_cast<float>(pair)));
  }
  const Buffer<float> c(cos.size()), s(sin.size());
  FUSELINE_CUDA(cudaMemcpy(c.data(), cos.data(), 4 * cos.size(), cudaMemcpyHostToDevice));
  FUSELINE_CUDA(cudaMemcpy(s.data(), sin.data(), 4 * sin.size(), cudaMemcpyHostToDevice));
  launch_tiles<RopeThereAndBack<distance>>(
      {x.tile(), {c.data(), period, d, d}, {s.data(), period, d, d}, y.tile()}, rows, cols, {});
  compare("rope there and back, " + std::to_string(distance) + " apart", y.values(), x.values(),
          1e-6);
}

void check_cache() {
  constexpr int batch = 3, tokens = 5, room = 11, heads = 2, width = 32, cols = heads * width;
  const Matrix<T> x(batch * tokens, 3 * cols, 0, 4);
  const Matrix<float> cache(batch * room, cols, 0, 5);
  const auto before = cache.values(), in = x.values();
  Tile<float> to = cache.tile();
  to.data += (room - tokens) * cols;
  to.rows = batch * tokens;
  to.period = tokens;
  to.jump = room;
  launch_tiles<HeadsToCache>({x.tile(), to}, batch * tokens, cols, {});
  std::vector<double> out = before;
  for (int m = 0; m < batch * tokens; ++m)
    for (int c = 0; c < cols; ++c)
      for (int i = 0; i < 3; ++i)
        out[(m / tokens * room + room - tokens + m % tokens) * cols + c] +=
            in[m * 3 * cols + (c / width * 3 + i) * width + c % width];
  compare("head sums added to a cache", cache.values(), out, 1e-6);
}

void check_gather() {
  constexpr int rows = 37, table_rows = 64, cols = 64;
  std::vector<int> ids;
  for (int m = 0; m < rows; ++m) ids.push_back(m * m * 7 % table_rows);
  const Buffer<int> on_device(rows);
  FUSELINE_CUDA(cudaMemcpy(on_device.data(), ids.data(), 4 * rows, cudaMemcpyHostToDevice));
  const Matrix<T> table(table_rows, cols, 0, 6), y(rows, 24, 0, 0);
  launch_tiles<GatherLessOneHot>({table.tile(), {on_device.data(), 1}, y.tile()}, rows, cols, {});
  const auto t = table.values();
  std::vector<double> out(rows * 24);
  for (int m = 0; m < rows; ++m)
    for (int c = 0; c < 24; ++c)
      out[m * 24 + c] = t[ids[m] * cols + 16 + c] - (ids[m] == 16 + c ? 1 : 0);
  compare("gathered rows less one-hot, columns 16:40", y.values(), out, rounding);

  const Matrix<T> from(rows, cols, 0, 7);
  const Matrix<float> sum(table_rows, cols, 0, 0), periods(table_rows, cols, 0, 0);
  constexpr int period = 8;
  Tile<float> first = periods.tile();
  launch_tiles<GatherBack>({from.tile(), {on_device.data(), 1}, period, sum.tile(), first},
                           table_rows, cols, {});
  const auto f = from.values();
  std::vector<double> sums(table_rows * cols, 0.0), by_period(period * cols, 0.0);
  for (int m = 0; m < rows; ++m)
    for (int c = 0; c < cols; ++c) {
      sums[ids[m] * cols + c] += f[m * cols + c];
      by_period[m % period * cols + c] += f[m * cols + c];
    }
  compare("gather_sum", sum.values(), sums, 1e-6);
  auto some = periods.values();
  some.resize(by_period.size());
  compare("period_sum", some, by_period, 1e-6);
}

void check_rows() {
  constexpr int rows = 29, cols = 77;
  const Matrix<float> moments(rows, 2 * cols, 0, 8), upper(rows, cols, 0, 0), y(rows, cols, 0, 0);
  const Matrix<float> bias(1, cols, 0, 9), mean(rows, 1, 0, 0);
  launch_tiles<UpperMoments>({moments.tile<false>(), upper.tile<false>()}, rows, cols, {});
  launch_rows<RowSoftmax<cols>>(
      {upper.tile<false>(), {bias.data.data()}, {mean.data.data(), 1}, y.tile<false>()},
      {rows, cols, 1, 0}, {});
  const auto in = moments.values(), b = bias.values();
  std::vector<double> halves, soft, means;
  for (int r = 0; r < rows; ++r) {
    double sum = 0, plain = 0;
    for (int c = 0; c < cols; ++c) {
      const double x = in[(r * cols + c) * 2 + 1];
      halves.push_back(x);
      soft.push_back(std::exp(x + b[c]));
      sum += soft.back();
      plain += x + b[c];
    }
    means.push_back(plain / cols);
    for (int c = 0; c < cols; ++c) soft[r * cols + c] /= sum;
  }
  compare("upper numbers of pairs", upper.values(), halves, 1e-9);
  compare("softmax of rows", y.values(), soft, 1e-5);
  compare("means of rows", mean.values(), means, 1e-5);
}

void check_column_partials(int rows, int cols) {
  const int blocks = ceil_div(rows, 128);
  const Matrix<T> x(rows, cols, 0, 10);
  const Matrix<float> partial(cols, 2 * blocks, 0, 0);
  launch_columns<ColumnPartials>({x.tile(), {partial.data.data(), 2 * blocks}}, {rows, cols, 128},
                                 {});
  const auto in = x.values();
  std::vector<double> out(static_cast<std::size_t>(cols) * 2 * blocks, 0.0);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      double* at = &out[c * 2 * blocks + r / 128 * 2];
      at[0] += in[r * cols + c];
      at[1] += in[r * cols + c] * in[r * cols + c];
    }
  compare("column partials of 128 rows", partial.values(), out, 1e-5);
}

}  // namespace
}  // namespace fuseline::bench

int main() {
  using namespace fuseline::bench;
  try {
    check_pairs(33, 200);
    check_rope_back<1>(31, 5);
    check_rope_back<24>(31, 7);
    check_rope_back<64>(29, 3);
    check_cache();
    check_gather();
    check_rows();
    check_column_partials(300, 72);
    std::printf("%s\n", failures == 0 ? "all checks passed" : "CHECKS FAILED");
    return failures == 0 ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "stream_check: %s\n", problem.what());
    return 70;
  }
}
