// Checks and times the mainloops of streams and rows (kernels/stream) with hand-written programs.
//
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a -I. -o stream_bench
//       cuda/bench/stream_bench.cu
//   ./stream_bench check      odd sizes, outputs poisoned, against fp64 on the CPU
//   ./stream_bench            the same, then bytes per second beside cudaMemcpy's
#include <cmath>
#include <cstring>

#include "stream_launch.cuh"
#include "stream_programs.cuh"

namespace fuseline::bench {
namespace {

using namespace gpu::stream::programs;
using T = gpu::bf16;
using Matrix = bench::Matrix<T>;

constexpr double rounding = 2.5e-3;  // of a bf16 result: 2^-9 at most, and its inputs' products

template <bool aligned = true>
void check_residual_and_swiglu(int rows, int cols, int padding) {
  const Matrix a(rows, cols, padding, 1), b(rows, cols, padding, 2);
  const Matrix sum(rows, cols, padding, 0), act(rows, cols, padding, 0);
  launch_tiles<ResidualAdd<aligned>>({a.tile<aligned>(), b.tile<aligned>(), sum.tile<aligned>()},
                                     rows, cols, {});
  launch_tiles<Swiglu<aligned>>({a.tile<aligned>(), b.tile<aligned>(), act.tile<aligned>()}, rows,
                                cols, {});
  const std::vector<double> x = a.values(), y = b.values();
  std::vector<double> added(x.size()), gated(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    added[i] = x[i] + y[i];
    gated[i] = x[i] / (1.0 + std::exp(-x[i])) * y[i];
  }
  const std::string size = " " + std::to_string(rows) + " x " + std::to_string(cols);
  compare("residual" + size, sum.values(), added, rounding);
  compare("swiglu" + size, act.values(), gated, rounding);
}

template <int cols, bool aligned = true>
void check_norm(int rows, int padding) {
  const Matrix x(rows, cols, padding, 3), w(1, cols, 0, 4), y(rows, cols, padding, 0);
  launch_rows<RmsNorm<cols, aligned>>({x.tile<aligned>(), {w.data.data()}, y.tile<aligned>()},
                                      {rows, cols, 1, 0}, {});
  std::vector<double> out = x.values();
  const std::vector<double> g = w.values();
  for (int r = 0; r < rows; ++r) {
    double s = 0;
    for (int c = 0; c < cols; ++c) s += out[r * cols + c] * out[r * cols + c];
    for (int c = 0; c < cols; ++c) out[r * cols + c] *= g[c] / std::sqrt(s / cols + 1e-5);
  }
  compare("rms_norm " + std::to_string(rows) + " x " + std::to_string(cols), y.values(), out,
          rounding);
}

template <int d>
void check_rope(int rows, int heads, int period) {
  const int cols = heads * d;
  const Matrix x(rows, cols, 8, 5), y(rows, cols, 8, 0);
  const Matrix cos(period, d, 0, 6), sin(period, d, 0, 7);
  launch_tiles<RopeHalves<d>>(
      {x.tile(), {cos.data.data(), period, d, d}, {sin.data.data(), period, d, d}, y.tile()}, rows, cols,
      {});
  const std::vector<double> in = x.values(), cs = cos.values(), sn = sin.values();
  std::vector<double> out(in.size());
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      const int at = r % period * d + c % d;
      const bool second = c % d >= d / 2;
      const double other = in[r * cols + (second ? c - d / 2 : c + d / 2)];
      out[r * cols + c] = in[r * cols + c] * cs[at] + (second ? other : -other) * sn[at];
    }
  compare("rope d " + std::to_string(d) + ", " + std::to_string(heads) + " heads", y.values(), out,
          rounding);
}

template <bool aligned = true>
void check_columns(int rows, int cols) {
  const Matrix d(rows, cols, 0, 8), h(rows, cols, 0, 9);
  const Buffer<float> r(rows), dw(cols);
  fill_normal(r, 10);
  dw.poison();
  launch_columns<NormWeightGradient<aligned>>(
      {d.tile<aligned>(), h.tile<aligned>(), {r.data(), 1}, {dw.data()}}, {rows, cols, rows}, {});
  const std::vector<double> a = d.values(), b = h.values();
  const std::vector<float> scale = r.host();
  std::vector<double> out(cols, 0.0);
  for (int i = 0; i < rows; ++i)
    for (int c = 0; c < cols; ++c)
      out[c] += a[i * cols + c] * b[i * cols + c] * static_cast<double>(scale[i]);
  compare("column sums " + std::to_string(rows) + " x " + std::to_string(cols), widened(dw.host()),
          out, 1e-5);
}

template <int d>
void check_heads(int batch, int heads, int tokens) {
  const int rows = batch * tokens, cols = heads * d;
  const Matrix a(rows, cols, 8, 11), b(rows, cols, 8, 12);
  const Buffer<float> delta(static_cast<std::size_t>(rows) * heads);
  delta.poison();
  launch_rows<HeadDots<d>>({a.tile(), b.tile(), {delta.data(), 1}},
                           {rows * heads, d, heads, tokens}, {});
  const std::vector<double> x = a.values(), y = b.values();
  std::vector<double> out(delta.size(), 0.0);
  for (int m = 0; m < rows; ++m)
    for (int c = 0; c < cols; ++c)
      out[(m / tokens * heads + c / d) * tokens + m % tokens] += x[m * cols + c] * y[m * cols + c];
  compare("head dots d " + std::to_string(d), widened(delta.host()), out, 1e-5);
}

template <int d>
void check_halves(int rows, int heads) {
  const int cols = heads * d, blocks = ceil_div(cols, partial_tile);
  const Matrix n(rows, cols / 2, 0, 13), x(rows, cols, 0, 14), y(rows, cols, 0, 0);
  const Buffer<float> squares(static_cast<std::size_t>(rows) * blocks);
  squares.poison();
  launch_tiles<ConcatHalves<d>>({n.tile(), x.tile(), y.tile(), {squares.data(), blocks}}, rows,
                                cols, {});
  const std::vector<double> a = n.values(), b = x.values();
  std::vector<double> out(b.size()), sums(squares.size(), 0.0);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      const int head = c / d, at = c % d;
      const double v =
          at < d / 2 ? a[r * (cols / 2) + head * d / 2 + at] : b[r * cols + head * d + at - d / 2];
      out[r * cols + c] = v;
      sums[r * blocks + c / partial_tile] += v * v;
    }
  compare("halves d " + std::to_string(d), y.values(), out, rounding);
  compare("sums of 128 columns", widened(squares.host()), sums, 1e-5);
}

void check_all() {
  check_residual_and_swiglu(37, 4096, 0);
  check_residual_and_swiglu(101, 200, 8);
  check_residual_and_swiglu<false>(53, 77, 0);
  check_norm<4096>(33, 0);
  check_norm<1600>(19, 8);
  check_norm<8192>(5, 0);
  check_norm<77, false>(21, 0);
  check_rope<128>(45, 5, 15);
  check_rope<64>(45, 25, 45);
  check_rope<80>(31, 7, 31);
  check_columns(301, 4096);
  check_columns<false>(2048, 77);
  check_heads<128>(2, 3, 41);
  check_heads<64>(1, 25, 17);
  check_halves<128>(29, 5);
  check_halves<64>(29, 3);
  std::printf("%s\n", failures == 0 ? "all checks passed" : "CHECKS FAILED");
}

// Buffers are rotated so that nothing is found in L2.
void time_all(int rows, int cols) {
  constexpr int sets = 4;
  std::vector<Matrix> a, b, y;
  for (int i = 0; i < sets; ++i) {
    a.emplace_back(rows, cols, 0, 1 + i);
    b.emplace_back(rows, cols, 0, 11 + i);
    y.emplace_back(rows, cols, 0, 0);
  }
  const Matrix w(1, cols, 0, 21), cos(2048, 128, 0, 22), sin(2048, 128, 0, 23);
  const Buffer<float> r(rows), dw(cols), delta(static_cast<std::size_t>(rows) * cols / 128);
  fill_normal(r, 24);
  const double tensor = 2.0 * rows * cols;
  struct Entry {
    double bytes;
    Contender contender;
  };
  std::vector<Entry> entries;
  const auto add_entry = [&](const char* name, double tensors, auto launch) {
    entries.push_back({tensors * tensor, {name, launch}});
  };
  add_entry("cudaMemcpy", 2, [&](int i, cudaStream_t s) {
    FUSELINE_CUDA(cudaMemcpyAsync(y[i].data.data(), a[i].data.data(),
                                  static_cast<std::size_t>(tensor), cudaMemcpyDeviceToDevice, s));
  });
  add_entry("copy", 2, [&](int i, cudaStream_t s) {
    launch_tiles<Copy<>>({a[i].tile(), y[i].tile()}, rows, cols, s);
  });
  add_entry("residual add", 3, [&](int i, cudaStream_t s) {
    launch_tiles<ResidualAdd<>>({a[i].tile(), b[i].tile(), y[i].tile()}, rows, cols, s);
  });
  add_entry("swiglu", 3, [&](int i, cudaStream_t s) {
    launch_tiles<Swiglu<>>({a[i].tile(), b[i].tile(), y[i].tile()}, rows, cols, s);
  });
  add_entry("rope on halves, d 128", 2, [&](int i, cudaStream_t s) {
    launch_tiles<RopeHalves<128>, 4>(
        {a[i].tile(), {cos.data.data(), 2048, 128, 128}, {sin.data.data(), 2048, 128, 128}, y[i].tile()},
        rows, cols, s);
  });
  if (cols == 4096)
    add_entry("rms_norm", 2, [&](int i, cudaStream_t s) {
      launch_rows<RmsNorm<4096>>({a[i].tile(), {w.data.data()}, y[i].tile()}, {rows, cols, 1, 0},
                                 s);
    });
  add_entry("column sums of a product", 2, [&](int i, cudaStream_t s) {
    launch_columns<NormWeightGradient<>>({a[i].tile(), b[i].tile(), {r.data(), 1}, {dw.data()}},
                                         {rows, cols, rows}, s);
  });
  add_entry("head dots, d 128", 2, [&](int i, cudaStream_t s) {
    launch_rows<HeadDots<128>>({a[i].tile(), b[i].tile(), {delta.data(), 1}},
                               {rows * cols / 128, 128, cols / 128, rows}, s);
  });
  std::vector<Contender> contenders;
  for (const Entry& e : entries) contenders.push_back(e.contender);
  time_alternating(contenders, sets, 8, 15);
  std::printf("\n%d x %d, bf16             us     GB/s   of cudaMemcpy\n", rows, cols);
  double copy = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const double us = median(contenders[i].times_us);
    const double rate = entries[i].bytes / us * 1e-3;
    if (i == 0) copy = rate;
    std::printf("%-26s %8.2f %8.0f   %5.2f\n", contenders[i].name.c_str(), us, rate, rate / copy);
  }
}

}  // namespace
}  // namespace fuseline::bench

int main(int count, char** words) {
  using namespace fuseline::bench;
  try {
    check_all();
    if (count > 1 && std::strcmp(words[1], "check") == 0) return failures == 0 ? 0 : 1;
    time_all(16384, 4096);
    time_all(2048, 4096);
    time_all(2048, 11008);
    return failures == 0 ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "stream_bench: %s\n", problem.what());
    return 70;
  }
}
