// Checks every epilogue primitive, in both operand layouts, on odd sizes, against plain loops on
// the CPU over an fp32 GEMM.
//
//   nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a epilogue_check.cu -o epilogue_check
//   ./epilogue_check
#include <cmath>
#include <cstring>
#include <utility>

#include "epilogues.cuh"
#include "launch_sm80.cuh"
#include "reference.cuh"

namespace fuseline::bench {
namespace {

using T = gpu::bf16;

std::size_t area(int rows, int cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
}
int padded(int n) { return (n + 7) / 8 * 8; }

// A matrix on the GPU with rows at multiples of 16 bytes, and its values as floats on the CPU.
template <class E>
struct Matrix {
  int rows, cols, ld;
  Buffer<E> device;
  Matrix(int r, int c) : rows(r), cols(c), ld(padded(c)), device(area(r, ld)) {}
  static Matrix random(int r, int c, unsigned seed, float scale = 1.0F) {
    Matrix m(r, c);
    fill_normal(m.device, seed, scale);
    return m;
  }
  static Matrix poisoned(int r, int c) {
    Matrix m(r, c);
    m.device.poison();
    return m;
  }
  E* data() const { return device.data(); }
  std::vector<float> values() const {
    const std::vector<E> raw = device.host();
    std::vector<float> out(area(rows, cols));
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j)
        out[area(i, cols) + static_cast<std::size_t>(j)] =
            static_cast<float>(raw[area(i, ld) + static_cast<std::size_t>(j)]);
    return out;
  }
};

int failures = 0;

// ‖got - want‖ / ‖want‖ under the tolerance; NaN (an element that was not written) fails.
void expect(const std::string& what, const std::vector<float>& got, const std::vector<float>& want,
            double tolerance) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += (double(got[i]) - want[i]) * (double(got[i]) - want[i]);
    norm += double(want[i]) * want[i];
  }
  const double relative = std::sqrt(error / norm);
  const bool good = relative < tolerance && got.size() == want.size() && norm > 0;
  if (!good) ++failures;
  std::printf("%-5s %-58s %.2e\n", good ? "ok" : "WRONG", what.c_str(), relative);
}

constexpr double stored = 2.5e-3;  // one rounding to bf16
constexpr double twice = 5e-3;     // a rounding of what was rounded
constexpr double summed = 2e-5;    // fp32 sums

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

// One problem: operands in the configuration's layouts, and the fp32 product on the CPU.
template <class Config>
struct Product {
  int M, N, K;
  Matrix<T> a, b;
  std::vector<float> y;
  Product(int m, int n, int k)
      : M(m),
        N(n),
        K(k),
        a(Config::a_is_km ? Matrix<T>::random(k, m, 1) : Matrix<T>::random(m, k, 1)),
        b(Config::b_is_kn ? Matrix<T>::random(k, n, 2, scale())
                          : Matrix<T>::random(n, k, 2, scale())),
        y(reference_gemm(m, n, k, a.data(), a.ld, Config::a_is_km, b.data(), b.ld, Config::b_is_kn)
              .host()) {}
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(K)); }
  float at(int m, int n) const { return y[area(m, N) + static_cast<std::size_t>(n)]; }
  template <class Epilogue>
  void run(const typename Epilogue::Params& params) const {
    launch<Config, Epilogue>({M, N, K, a.ld, b.ld}, a.data(), b.data(), 3, params, nullptr);
    FUSELINE_CUDA(cudaDeviceSynchronize());
  }
  // A matrix of f(row, column).
  template <class F>
  static std::vector<float> table(int rows, int cols, F&& f) {
    std::vector<float> out;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < cols; ++j) out.push_back(f(i, j));
    return out;
  }
};

template <class Config>
void check_config(const std::string& name, int M, int N, int K) {
  const Product<Config> p(M, N, K);
  const std::string at =
      name + " " + std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + ": ";
  const int blocks = gpu::ceil_div(N, 128);
  const auto table = [](int r, int c, auto&& f) { return Product<Config>::table(r, c, f); };
  const auto row = [](const std::vector<float>& v, int cols, int i, int j) {
    return v[area(i, cols) + static_cast<std::size_t>(j)];
  };
  const auto r = Matrix<float>::random(1, M, 3);
  const auto c = Matrix<float>::random(1, M, 4);
  const auto rv = r.values();
  const auto cv = c.values();
  const auto R = [&](int m) { return rv[static_cast<std::size_t>(m)]; };
  const auto C = [&](int m) { return cv[static_cast<std::size_t>(m)]; };

  {
    auto b = Matrix<T>::random(1, N, 5);
    auto b2 = Matrix<float>::random(1, N, 6);
    auto y1 = Matrix<float>::poisoned(M, N);
    auto o = Matrix<T>::poisoned(M, N);
    p.template run<BiasGelu<T>>({cols_in<T, 0>(b.data(), N), cols_in<float, 1>(b2.data(), N),
                                 tile_out(y1.data(), M, N, y1.ld), tile_out(o.data(), M, N, o.ld)});
    const auto bv = b.values();
    const auto b2v = b2.values();
    const auto want = table(M, N, [&](int m, int n) {
      return p.at(m, n) + bv[static_cast<std::size_t>(n)] + b2v[static_cast<std::size_t>(n)];
    });
    expect(at + "bias, fp32 store", y1.values(), want, summed);
    expect(at + "gelu", o.values(),
           table(M, N,
                 [&](int m, int n) {
                   const float x = row(want, N, m, n);
                   return 0.5F * x * (1 + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x)));
                 }),
           stored);
  }
  if (N % 16 == 0) {
    const int split = N / 2;
    const int period = 50;
    const int d = 24;
    auto cos = Matrix<T>::random(period, d, 7);
    auto sin = Matrix<T>::random(period, d, 8);
    auto rotated = Matrix<T>::poisoned(M, split);
    auto rest = Matrix<T>::poisoned(M, N - split);
    p.template run<RopePart<T>>({{r.data(), 1},
                                 {cos.data(), period, d},
                                 {sin.data(), period, d},
                                 tile_out(rotated.data(), M, split, rotated.ld),
                                 tile_out(rest.data(), M, N - split, rest.ld),
                                 split,
                                 N});
    const auto cosv = cos.values();
    const auto sinv = sin.values();
    expect(at + "rope of a part", rotated.values(),
           table(M, split,
                 [&](int m, int n) {
                   const float turn = row(sinv, d, m % period, n % d) * p.at(m, n ^ 1) * R(m);
                   const float x = row(cosv, d, m % period, n % d) * p.at(m, n) * R(m);
                   return n % 2 == 0 ? x - turn : x + turn;
                 }),
           stored);
    expect(at + "the other part", rest.values(),
           table(M, N - split, [&](int m, int n) { return p.at(m, n + split) * R(m); }), stored);
  }
  if (N % 2 == 0) {
    auto pairs = Matrix<T>::poisoned(M, N);
    auto o = Matrix<T>::poisoned(M, N / 2);
    auto top = Matrix<float>::poisoned(M, blocks);
    p.template run<Swiglu<T>>({{r.data(), 1},
                               tile_out(pairs.data(), M, N, pairs.ld),
                               tile_out(o.data(), M, N / 2, o.ld, 1),
                               {top.data(), top.ld}});
    expect(at + "row scale", pairs.values(),
           table(M, N, [&](int m, int n) { return p.at(m, n) * R(m); }), stored);
    expect(at + "swiglu", o.values(),
           table(M, N / 2,
                 [&](int m, int n) {
                   const float gate = p.at(m, 2 * n) * R(m);
                   return gate * sigmoid(gate) * p.at(m, 2 * n + 1) * R(m);
                 }),
           stored);
    expect(at + "row maxima", top.values(),
           table(M, blocks,
                 [&](int m, int b) {
                   float best = -INFINITY;
                   for (int n = 128 * b; n < std::min(N, 128 * b + 128); ++n)
                     best = std::max(best, p.at(m, n) * R(m));
                   return best;
                 }),
           summed);
  }
  {
    auto gu = Matrix<T>::random(M, 2 * N, 9);
    auto dgu = Matrix<T>::poisoned(M, 2 * N);
    auto again = Matrix<T>::poisoned(M, N);
    const int wide = gpu::ceil_div(2 * N, 128);
    auto dots = Matrix<float>::poisoned(M, wide);
    p.template run<SwigluBackward<T>>({tile_in<T, 0, 4>(gu.data(), M, 2 * N, gu.ld, Config::tile_m),
                                       tile_out(dgu.data(), M, 2 * N, dgu.ld, 4, 4),
                                       tile_out(again.data(), M, N, again.ld, 2, 4),
                                       {dots.data(), dots.ld}});
    const auto guv = gu.values();
    const auto gradient = table(M, 2 * N, [&](int m, int n) {
      const float g = row(guv, 2 * N, m, n & ~1);
      const float u = row(guv, 2 * N, m, n | 1);
      const float s = sigmoid(g);
      const float t = g * s;
      const float d = p.at(m, n / 2);
      return n % 2 == 0 ? d * u * (s + t * (1 - s)) : d * t;
    });
    expect(at + "swiglu gradient", dgu.values(), gradient, stored);
    expect(at + "swiglu again", again.values(),
           table(M, N,
                 [&](int m, int n) {
                   const float g = row(guv, 2 * N, m, 2 * n);
                   return g * sigmoid(g) * row(guv, 2 * N, m, 2 * n + 1);
                 }),
           stored);
    expect(at + "row sums of a wide tile", dots.values(),
           table(M, wide,
                 [&](int m, int b) {
                   float sum = 0;
                   for (int n = 128 * b; n < std::min(2 * N, 128 * b + 128); ++n)
                     sum += row(gradient, 2 * N, m, n) * row(guv, 2 * N, m, n);
                   return sum;
                 }),
           summed);
  }
  // Two tiles and a vector a slab need a stage of 32 KiB and a little more.
  if constexpr (Config::tile_n > 128 || is_sm80<Config>) {
    auto h = Matrix<T>::random(M, N, 10);
    auto dy = Matrix<T>::random(M, N, 11);
    auto g = Matrix<T>::random(1, N, 12);
    auto hn = Matrix<T>::poisoned(M, N);
    auto dres = Matrix<T>::random(M, N, 13);
    const auto before = dres.values();
    const int row_blocks = gpu::ceil_div(M, 128);
    auto dg = Matrix<float>::poisoned(N, row_blocks);
    p.template run<NormBackward<T>>({tile_in<T, 0>(h.data(), M, N, h.ld, Config::tile_m),
                                     tile_in<T, 1>(dy.data(), M, N, dy.ld, Config::tile_m),
                                     cols_in<T, 0>(g.data(), N),
                                     {r.data(), 1},
                                     {c.data(), 1},
                                     tile_out(hn.data(), M, N, hn.ld),
                                     tile_out(dres.data(), M, N, dres.ld),
                                     {dg.data(), dg.ld}});
    const auto hv = h.values();
    const auto dyv = dy.values();
    const auto gv = g.values();
    const auto G = [&](int n) { return gv[static_cast<std::size_t>(n)]; };
    expect(at + "norm's operand again", hn.values(),
           table(M, N, [&](int m, int n) { return row(hv, N, m, n) * R(m) * G(n); }), stored);
    expect(at + "column sums", dg.values(),
           table(N, row_blocks,
                 [&](int n, int b) {
                   float sum = 0;
                   for (int m = 128 * b; m < std::min(M, 128 * b + 128); ++m)
                     sum += p.at(m, n) * row(hv, N, m, n) * R(m);
                   return sum;
                 }),
           summed);
    expect(at + "norm gradient, accumulated", dres.values(),
           table(M, N,
                 [&](int m, int n) {
                   const float z = row(hv, N, m, n) * R(m);
                   return row(before, N, m, n) + row(dyv, N, m, n) +
                          (p.at(m, n) * G(n) - z * C(m)) * R(m);
                 }),
           twice);
  }
  {
    std::vector<int> targets;
    for (int m = 0; m < M; ++m) targets.push_back(m * 7919 % N);
    Buffer<int> device_targets(targets.size());
    FUSELINE_CUDA(cudaMemcpy(device_targets.data(), targets.data(), targets.size() * sizeof(int),
                             cudaMemcpyHostToDevice));
    auto moments = Matrix<float>::poisoned(M, 2 * blocks);
    auto lse = Matrix<float>::poisoned(M, 3 * blocks);
    const int row_blocks = gpu::ceil_div(M, 128);
    auto sums = Matrix<float>::poisoned(N, row_blocks);
    p.template run<Statistics<T>>({{moments.data(), moments.ld},
                                   {lse.data(), lse.ld},
                                   {sums.data(), sums.ld},
                                   {device_targets.data(), 1}});
    expect(at + "column sums of squares", sums.values(),
           table(N, row_blocks,
                 [&](int n, int b) {
                   double sum = 0;
                   for (int m = 128 * b; m < std::min(M, 128 * b + 128); ++m)
                     sum += p.at(m, n) * p.at(m, n);
                   return static_cast<float>(sum);
                 }),
           summed);
    expect(at + "sums and sums of squares", moments.values(),
           table(M, 2 * blocks,
                 [&](int m, int i) {
                   double sum = 0;
                   for (int n = i / 2 * 128; n < std::min(N, i / 2 * 128 + 128); ++n)
                     sum += i % 2 == 0 ? p.at(m, n) : p.at(m, n) * p.at(m, n);
                   return static_cast<float>(sum);
                 }),
           summed);
    expect(at + "log-sum-exp with target", lse.values(),
           table(M, 3 * blocks,
                 [&](int m, int i) {
                   const int first = i % blocks * 128;
                   const int last = std::min(N, first + 128);
                   const int target = targets[static_cast<std::size_t>(m)];
                   if (i / blocks == 2)
                     return target >= first && target < last ? p.at(m, target) : 0.0F;
                   float best = -INFINITY;
                   for (int n = first; n < last; ++n) best = std::max(best, p.at(m, n));
                   if (i / blocks == 0) return best;
                   float sum = 0;
                   for (int n = first; n < last; ++n) sum += std::exp(p.at(m, n) - best);
                   return sum;
                 }),
           summed);
  }
}

constexpr auto coop = gpu::Schedule::cooperative;
constexpr auto ping = gpu::Schedule::ping_pong;

template <class Config>
void check_sizes(const std::string& name) {
  check_config<Config>(name, 333, 776, 200);
  check_config<Config>(name, 130, 1000, 40);
  check_config<Config>(name, 7, 264, 520);
  check_config<Config>(name, 259, 137, 65);
}

int run() {
  check_sizes<gpu::Sm90Config<T, 128, 256, 2, coop>>("128x256 c2");
  check_sizes<gpu::Sm90Config<T, 128, 128, 2, ping>>("128x128 c2 ping");
  check_sizes<gpu::Sm90Config<T, 128, 256, 2, coop, true, true>>("128x256 c2, A[K,M], B[K,N]");
  check_sizes<gpu::Sm90Config<T, 128, 128, 1, ping, false, true>>("128x128 ping, B[K,N]");
  check_sizes<gpu::Sm80Config<T, 128>>("sm80 128x128");
  check_sizes<gpu::Sm80Config<T, 256, true, true>>("sm80 128x256, A[K,M], B[K,N]");
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fuseline::bench

int main() {
  try {
    return fuseline::bench::run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 70;
  }
}
