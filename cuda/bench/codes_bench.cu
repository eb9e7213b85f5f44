// Products of e4m3 codes by e4m3 codes on Hopper's mainloop: checks them against fp32 sums of the
// same codes and times them, tile by tile.
//
//   nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a codes_bench.cu -o codes_bench -ldl
//   ./codes_bench [M N K]...        without: odd shapes are checked, LLaMA-2-7B's are timed too
#include <array>
#include <cstdlib>

#include "../kernels/epilogue/plain.cuh"
#include "reference.cuh"
#include "tensor_map.cuh"

namespace fuseline::bench {

namespace {

using T = gpu::bf16;
using E4m3 = gpu::e4m3;
using Out = gpu::StoreResult<gpu::TileOut<T>>;
constexpr auto coop = gpu::Schedule::cooperative;
constexpr auto ping = gpu::Schedule::ping_pong;

using Weight = gpu::WeightCodes<gpu::Codes::e4m3, gpu::ScaleType::fp32, 0>;
template <class Shape>
using Codes = gpu::Sm90CodesConfig<Shape, Weight>;
template <int tile_m, int tile_n>
using Shared = gpu::Sm90Config<T, tile_m, tile_n, 2, coop, false, false, false, 1, tile_m, false,
                               false, false, true>;
template <int rows, int cols>
using Turned = gpu::Sm90Config<T, cols, rows, 2, coop, false, false, false, 1, cols, false, false,
                               false, false, true>;

// Sums of the codes' values, times the scales.
__global__ void scale_kernel(float* y, int M, int N, const float* a, int a_ld, const float* b,
                             int b_ld) {
  for (long long i = blockIdx.x * 256LL + threadIdx.x; i < 1LL * M * N; i += 256LL * gridDim.x)
    y[i] *= a[i / N * a_ld] * b[i % N * b_ld];
}
__global__ void positive_kernel(float* x, int count) {
  for (int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x); i < count;
       i += static_cast<int>(256 * gridDim.x))
    x[i] = 0.001F + fabsf(x[i]);
}
__global__ void encode_kernel(const float* from, E4m3* to, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t{256} + threadIdx.x; i < count;
       i += std::size_t{256} * gridDim.x)
    to[i] = gpu::from_float<E4m3>(from[i]);
}

struct Problem {
  int M, N, K, ld;
  static constexpr int scale_ld = 4, extra_rows = 3;
  Buffer<E4m3> a, b;
  Buffer<float> a_scale, b_scale;
  Buffer<T> y;

  Problem(int m, int n, int k, unsigned seed)
      : M(m),
        N(n),
        K(k),
        ld((k + 15) / 16 * 16),
        a(codes(m, seed + 1)),
        b(codes(n, seed + 2)),
        a_scale(scales(m, seed + 3)),
        b_scale(scales(n, seed + 4)),
        y(static_cast<std::size_t>(m + extra_rows) * static_cast<std::size_t>(ldy())) {}
  int ldy() const { return (N + 7) / 8 * 8 + 8; }
  Buffer<E4m3> codes(int rows, unsigned seed) const {
    const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(ld);
    Buffer<float> numbers(count);
    fill_normal(numbers, seed, 100.0F);
    Buffer<E4m3> out(count);
    encode_kernel<<<1024, 256>>>(numbers.data(), out.data(), count);
    FUSELINE_CUDA(cudaDeviceSynchronize());
    return out;
  }
  static Buffer<float> scales(int rows, unsigned seed) {
    Buffer<float> out(static_cast<std::size_t>(rows * scale_ld));
    fill_normal(out, seed, 0.01F);
    positive_kernel<<<64, 256>>>(out.data(), rows * scale_ld);
    FUSELINE_CUDA(cudaGetLastError());
    return out;
  }
  Buffer<float> reference() const {
    Buffer<float> want = reference_gemm(M, N, K, a.data(), ld, false, b.data(), ld, false);
    scale_kernel<<<1024, 256>>>(want.data(), M, N, a_scale.data(), scale_ld, b_scale.data(),
                                scale_ld);
    FUSELINE_CUDA(cudaGetLastError());
    return want;
  }
};

struct Kernel {
  std::string name;
  std::function<void(const Problem&, cudaStream_t)> launch;
  int most_rows = 1 << 30, least_depth = 0;
};

template <class Shape>
Kernel kernel(const std::string& name, int group = 8, int tail_parts = 1) {
  Kernel k{name, [=](const Problem& p, cudaStream_t stream) {
             const Out::Params params{tile_out(p.y.data(), p.M, p.N, p.ldy())};
             const gpu::CodeScales scales{p.a_scale.data(),  p.b_scale.data(), nullptr,
                                          Problem::scale_ld, Problem::scale_ld, p.N, 0};
             launch_sm90<Codes<Shape>, Out>({p.M, p.N, p.K, p.ld, p.ld}, p.a.data(), p.b.data(),
                                            group, params, stream, tail_parts, scales);
           }};
  if (Shape::a_rows < Shape::tile_m) k.most_rows = Shape::a_rows;
  k.least_depth = Shape::cluster_k * Codes<Shape>::tile_k;  // a step for each block, as emitted
  return k;
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> k;
  k.push_back(kernel<gpu::Sm90Config<T, 128, 256, 2, coop>>("128x256 c2"));
  k.push_back(kernel<gpu::Sm90Config<T, 128, 192, 2, coop>>("128x192 c2"));
  k.push_back(kernel<gpu::Sm90Config<T, 128, 128, 2, coop>>("128x128 c2"));
  k.push_back(kernel<gpu::Sm90Config<T, 256, 128, 2, coop>>("256x128 c2", 4));
  k.push_back(kernel<gpu::Sm90Config<T, 64, 256, 2, ping>>("64x256 c2 ping"));
  k.push_back(kernel<gpu::Sm90Config<T, 64, 192, 2, ping>>("64x192 c2 ping"));
  k.push_back(kernel<gpu::Sm90Config<T, 128, 128, 2, ping>>("128x128 c2 ping"));
  k.push_back(kernel<gpu::Sm90Config<T, 64, 128, 1, ping, false, false, false, 4, 16>>(
      "16 of 64x128 in 4"));
  k.push_back(kernel<Shared<128, 256>>("128x256 shared 2", 8, 2));
  k.push_back(kernel<Shared<128, 256>>("128x256 shared 3", 8, 3));
  k.push_back(kernel<Turned<128, 256>>("turned 128x256"));
  k.push_back(kernel<Turned<160, 256>>("turned 160x256"));
  return k;
}

// The sums keep about 13 bits (kernels/ptx/wgmma.cuh), and rounding to bf16 costs 0.0017.
constexpr double tolerance = 5e-3;

bool run(int M, int N, int K, bool timed) {
  const Problem p(M, N, K, 7);
  const Buffer<float> want = p.reference();
  std::vector<Contender> contenders;
  bool good = true;
  for (const Kernel& k : kernels()) {
    if (M > k.most_rows || K < k.least_depth) continue;
    p.y.poison();
    k.launch(p, nullptr);
    FUSELINE_CUDA(cudaDeviceSynchronize());
    const Comparison c =
        compare(p.y.data(), p.ldy(), M + Problem::extra_rows, M, N, want.data());
    std::printf("%5d x %5d x %5d  %-18s  relative error %.2e%s\n", M, N, K, k.name.c_str(),
                c.relative, c.good(tolerance) ? "" : "  WRONG");
    good = good && c.good(tolerance);
    if (timed)
      contenders.push_back({k.name, [&p, k](int, cudaStream_t s) { k.launch(p, s); }});
  }
  if (!timed) return good;
  time_alternating(contenders, 1, 10, 15);
  for (const Contender& c : contenders) {
    const double us = median(c.times_us);
    std::printf("%5d x %5d x %5d  %-18s  %8.1f us  %6.0f TFLOP/s  %5.0f MHz\n", M, N, K,
                c.name.c_str(), us, 2e-6 * M * N * K / us, median(c.clocks_mhz));
  }
  return good;
}

}  // namespace

int run_all(const std::vector<int>& numbers) {
  bool good = true;
  if (numbers.empty()) {
    for (const auto& [m, n, k] : {std::array{1, 64, 128}, std::array{16, 512, 1040},
                                  std::array{200, 328, 208}, std::array{777, 1032, 1072}})
      good = run(m, n, k, false) && good;
    for (const auto& [n, k] : {std::array{12288, 4096}, std::array{4096, 4096},
                               std::array{22016, 4096}, std::array{4096, 11008}})
      good = run(2048, n, k, true) && good;
  }
  for (std::size_t i = 0; i + 2 < numbers.size(); i += 3)
    good = run(numbers[i], numbers[i + 1], numbers[i + 2], true) && good;
  std::printf("%s\n", good ? "all agree" : "SOME ARE WRONG");
  return good ? 0 : 1;
}

}  // namespace fuseline::bench

int main(int argc, char** argv) {
  try {
    std::vector<int> numbers;
    for (int i = 1; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
    return fuseline::bench::run_all(numbers);
  } catch (const std::exception& e) {
    std::printf("%s\n", e.what());
    return 1;
  }
}
