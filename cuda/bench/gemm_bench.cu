// Checks and times the GEMM kernels against cuBLASLt on the GPU at hand.
//
//   nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a gemm_bench.cu decode_kernels.cu
//   -lcublasLt -o gemm_bench
//   ./gemm_bench [--ladder | --decode] [--check [--small]] [--time] [--only NAME]
//                [--shape M,N,K]... [--replays N] [--burst MS] [--out FOLDER]
//
// --decode: kernels and sizes of decode, of 1 to 128 rows. --only keeps cuBLASLt and the kernels
// whose names hold NAME. --shape takes the place of the sizes to check and to time.
//
// Inputs are normal random numbers: equal or zero inputs run up to 13 % faster. Rivals alternate
// within one run, over buffers that together exceed L2; a time is the median of graph replays.
#include <cuda_profiler_api.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

#include "cublaslt.cuh"
#include "gemm_kernel.cuh"
#include "ladder.cuh"

namespace fuseline::bench {
namespace {

Kernel rung(const std::string& name, int number) {
  return {name, false, [number](const Problem& p, const Set& s, cudaStream_t stream) {
            launch_rung(number, p.operands(), s.a.data(), s.b.data(), s.y.data(), p.ldy, stream);
          }};
}

constexpr auto coop = gpu::Schedule::cooperative;
constexpr auto ping = gpu::Schedule::ping_pong;

// Tiles of the last round shared along K.
template <int tile_m, int tile_n, int cluster>
using Shared = gpu::Sm90Config<T, tile_m, tile_n, cluster, coop, false, false, false, 1, tile_m,
                               false, false, false, true>;

// Weights and tokens change places: `rows` tokens × `cols` features.
template <int rows, int cols>
using Turned = gpu::Sm90Config<T, cols, rows, 2, coop, false, false, false, 1, cols, false, false,
                               false, false, true>;
template <int cols, int... rows>
void add_turned(std::vector<Kernel>& k) {
  (k.push_back(plain<Turned<rows, cols>>(
       "turned " + std::to_string(rows) + "x" + std::to_string(cols) + " c2 g8", 8)),
   ...);
}

template <int... rows>
void add_fused_turned(std::vector<Kernel>& k) {
  (k.push_back(fused<Turned<rows, 256>>("fused turned " + std::to_string(rows) + "x256 c2 g8", 8)),
   ...);
}

// Names: tile, cluster, schedule where it is ping-pong, rows of clusters that are swept together.
std::vector<Kernel> product_kernels() {
  using Coop = gpu::Sm90Config<T, 128, 256, 2, coop>;
  using Ping = gpu::Sm90Config<T, 128, 128, 2, ping>;
  std::vector<Kernel> k;
  k.push_back(plain<Coop>("128x256 c2 g8", 8));
  k.push_back(plain<Coop>("128x256 c2 g4", 4));
  k.push_back(plain<gpu::Sm90Config<T, 256, 128, 2, coop>>("256x128 c2 g4", 4));
  k.push_back(plain<gpu::Sm90Config<T, 128, 192, 2, coop>>("128x192 c2 g8", 8));
  k.push_back(plain<Ping>("128x128 c2 ping g8", 8));
  k.push_back(plain<gpu::Sm90Config<T, 128, 128, 2, coop>>("128x128 c2 g8", 8));
  k.push_back(plain<gpu::Sm90Config<T, 128, 192, 1, coop>>("128x192 c1 g8", 8));
  k.push_back(plain<gpu::Sm90Config<T, 64, 256, 1, ping>>("64x256 c1 ping g8", 8));
  k.push_back(plain<gpu::Sm90Config<T, 64, 192, 2, ping>>("64x192 c2 ping g8", 8));
  k.push_back(plain<gpu::Sm90Config<T, 64, 128, 2, ping>>("64x128 c2 ping g8", 8));
  for (int parts = 2; parts <= most_tail_parts; ++parts) {
    const std::string in_parts = " g8 tail in " + std::to_string(parts);
    k.push_back(plain<Shared<128, 256, 2>>("128x256 c2" + in_parts, 8, parts));
    k.push_back(plain<Shared<128, 192, 2>>("128x192 c2" + in_parts, 8, parts));
    k.push_back(plain<Shared<128, 256, 1>>("128x256 c1" + in_parts, 8, parts));
    k.push_back(fused<Shared<128, 256, 2>>("fused 128x256 c2" + in_parts, 8, parts));
  }
  add_turned<128, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320>(k);
  add_turned<256, 96, 112, 128, 144, 160>(k);
  add_fused_turned<80, 96, 112, 128, 144, 160>(k);
  k.push_back(fused<Coop>("fused 128x256 c2 g8", 8));
  k.push_back(fused<Coop>("fused 128x256 c2 g4", 4));
  k.push_back(fused<Ping>("fused 128x128 c2 ping g8", 8));
  return k;
}
std::vector<Kernel> ladder_kernels() {
  std::vector<Kernel> k;
  k.push_back(rung("1 naive", 1));
  k.push_back(rung("2 shared tiles", 2));
  k.push_back(rung("3 mma.sync", 3));
  k.push_back(rung("4 first wgmma", 4));
  k.push_back(rung("5 warp-specialised", 5));
  k.push_back(rung("6 persistent cluster", 6));
  k.push_back(rung("7 product", 7));
  k.push_back(plain<gpu::Sm80Config<T, 256>>("3b mma.sync 128x256", 8));
  k.push_back(fused<gpu::Sm80Config<T, 128>>("3c mma.sync fused", 8));
  return k;
}

// h = x + r ∘ y in place; partial sums of squares of each block of 128 columns.
__global__ void fused_reference(int M, int N, int ld, const T* x, const float* r, float* y,
                                float* s) {
  const int block = static_cast<int>(blockIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  float sum = 0;
  for (int c = block * 128; c < min(N, (block + 1) * 128); ++c) {
    float& v = y[1LL * row * N + c];
    v = v * r[row] + gpu::to_float(x[1LL * row * ld + c]);
    sum += v * v;
  }
  s[1LL * row * gridDim.x + block] = sum;
}

// bf16 results: half a unit in the last place of 8 bits is 2⁻⁹; the mean error of rounding is about
// 2⁻⁹ / sqrt(3) of a value's size: 1.1e-3. Sums of squares are fp32 sums of unrounded values.
constexpr double tile_tolerance = 2.5e-3;
constexpr double sum_tolerance = 1e-4;

bool check_kernel(const Kernel& kernel, Shape shape) {
  Problem p(shape, 1, 77);
  const Set& set = p.sets[0];
  set.y.poison();
  set.s.poison();
  kernel.launch(p, set, nullptr);
  Buffer<float> want = reference_gemm(shape.M, shape.N, shape.K, set.a.data(), p.lda, false,
                                      set.b.data(), p.ldb, false);
  Buffer<float> want_s(set.s.size());
  if (kernel.fused) {
    fused_reference<<<dim3(static_cast<unsigned>(p.blocks), static_cast<unsigned>(shape.M)), 1>>>(
        shape.M, shape.N, p.ldy, set.x.data(), set.r.data(), want.data(), want_s.data());
  }
  const Comparison y =
      compare(set.y.data(), p.ldy, shape.M + extra_rows, shape.M, shape.N, want.data());
  bool good = y.good(tile_tolerance);
  Comparison s;
  if (kernel.fused) {
    s = compare(set.s.data(), p.blocks, shape.M, shape.M, p.blocks, want_s.data());
    good = good && s.good(sum_tolerance);
  }
  if (!good)
    std::printf("WRONG %-26s %d x %d x %d: error %.2e, overran %d, sums %.2e\n",
                kernel.name.c_str(), shape.M, shape.N, shape.K, y.relative, y.overran, s.relative);
  return good;
}

struct Options {
  bool check = false, time = false, small = false, ladder = false, decode = false;
  std::string only, out;
  std::vector<Shape> shapes;  // instead of the standard ones
  bool profile = false;       // one launch of each, between cudaProfilerStart and Stop
  int replays = 15;
  double burst_ms = 2;  // of one contender before the next has its turn
};

int run(const Options& options) {
  int wrong = 0;
  std::vector<Kernel> all = options.ladder   ? ladder_kernels()
                            : options.decode ? decode_kernels()
                                             : product_kernels();
  std::erase_if(all, [&](const Kernel& k) {
    return !options.only.empty() && k.name.find(options.only) == std::string::npos;
  });
  if (options.check) {
    std::vector<Shape> shapes = {{64, 64, 64},      {128, 256, 64},    {1, 8, 8},
                                 {129, 257, 65},    {333, 777, 555},   {300, 136, 40},
                                 {1000, 1000, 200}, {2100, 3072, 1096}};
    if (!options.shapes.empty()) {
      shapes = options.shapes;
    } else if (options.decode) {
      shapes = {{1, 8, 264},    {1, 640, 1000},   {7, 136, 264},    {8, 4096, 512}, {13, 777, 555},
                {31, 257, 712}, {48, 1000, 2000}, {64, 4096, 1096}, {100, 777, 300}};
    } else if (!options.small) {
      shapes.push_back({2048, 4096, 4096});
      shapes.push_back({2055, 22016, 520});
      shapes.push_back({8192, 4096, 1024});
    }
    for (const Kernel& k : all) {
      int good = 0, tried = 0;
      for (const Shape& s : shapes) {
        if (s.M > k.most_rows) continue;
        ++tried;
        good += check_kernel(k, s) ? 1 : 0;
      }
      wrong += tried - good;
      std::printf("check %-26s %d of %d sizes right\n", k.name.c_str(), good, tried);
    }
  }
  if (!options.time) return wrong;

  std::unique_ptr<std::ofstream> csv;
  if (!options.out.empty()) {
    csv = std::make_unique<std::ofstream>(options.out + (options.ladder   ? "/ladder.csv"
                                                         : options.decode ? "/decode.csv"
                                                                          : "/gemm.csv"));
    *csv << "m,n,k,kernel,time_us,tflops,over_cublaslt,sm_mhz,power_w\n";
  }
  std::vector<Shape> shapes = options.shapes;
  if (shapes.empty() && options.decode) {
    for (const int m : {1, 2, 8, 16, 24, 32, 64, 100, 128})
      for (const auto& [n, k] :
           {std::pair{6144, 4096}, {4096, 4096}, {5120, 5120}, {28672, 4096}, {4096, 14336}})
        shapes.push_back({m, n, k});
  } else if (shapes.empty()) {
    for (const int m : {2048, 8192})
      for (const auto& [n, k] :
           {std::pair{12288, 4096}, {4096, 4096}, {22016, 4096}, {4096, 11008}})
        shapes.push_back({m, n, k});
    shapes.push_back({4096, 4096, 4096});
    shapes.push_back({8192, 8192, 8192});
  }
  // Sums of logarithms, and over how many sizes: kernels for few rows miss some.
  std::map<std::string, std::pair<double, int>> logs;
  double best_logs = 0;
  double best_fused_logs = 0;
  double worst = 1e30;
  Shape worst_shape{};
  for (const Shape& shape : shapes) {
    const double bytes =
        2.0 * (1.0 * shape.M * shape.K + 1.0 * shape.N * shape.K + 2.0 * shape.M * shape.N);
    const int sets = std::clamp(static_cast<int>(200e6 / bytes) + 1, 2, 4);
    Problem p(shape, sets, 5);
    const double flops = 2.0 * shape.M * shape.N * shape.K;
    // About what a launch takes: of few rows it is the bytes' time.
    const double seconds = std::max(flops / 7e14, bytes / 4e12);
    const int launches = std::max(static_cast<int>(options.burst_ms * 1e-3 / seconds), sets);
    CublasLt rival;
    rival.plan(shape.M, shape.N, shape.K, false, false, p.sets[0].a.data(), p.sets[0].b.data(),
               p.sets[0].y.data());
    std::vector<Contender> contenders;
    contenders.push_back({"cublasLt", [&](int i, cudaStream_t stream) {
                            const Set& s = p.sets[static_cast<std::size_t>(i)];
                            rival.run(s.a.data(), s.b.data(), s.y.data(), stream);
                          }});
    std::vector<bool> is_fused = {false};
    for (const Kernel& k : all) {
      if (shape.M > k.most_rows) continue;
      is_fused.push_back(k.fused);
      contenders.push_back({k.name, [&](int i, cudaStream_t stream) {
                              k.launch(p, p.sets[static_cast<std::size_t>(i)], stream);
                            }});
    }
    if (options.profile) {
      FUSELINE_CUDA(cudaDeviceSynchronize());
      cudaProfilerStart();
      for (Contender& c : contenders) {
        std::printf("profile %s\n", c.name.c_str());
        c.launch(0, nullptr);
        FUSELINE_CUDA(cudaDeviceSynchronize());
      }
      cudaProfilerStop();
      continue;
    }
    time_alternating(contenders, sets, launches, options.replays);
    const double base = median(contenders[0].times_us);
    std::printf("\n%d x %d x %d\n", shape.M, shape.N, shape.K);
    double best = 1e30;
    double best_fused = 1e30;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const double t = median(contenders[i].times_us);
      const double ratio = base / t;
      logs[contenders[i].name].first += std::log(ratio);
      ++logs[contenders[i].name].second;
      if (i > 0) (is_fused[i] ? best_fused : best) = std::min(is_fused[i] ? best_fused : best, t);
      std::printf("  %-26s %9.1f us %7.1f TFLOP/s  %.3f  %5.0f MHz %4.0f W\n",
                  contenders[i].name.c_str(), t, flops / t * 1e-6, ratio,
                  median(contenders[i].clocks_mhz), median(contenders[i].powers_w));
      if (csv)
        *csv << shape.M << ',' << shape.N << ',' << shape.K << ',' << contenders[i].name << ',' << t
             << ',' << flops / t * 1e-6 << ',' << ratio << ',' << median(contenders[i].clocks_mhz)
             << ',' << median(contenders[i].powers_w) << '\n';
    }
    best_logs += std::log(base / best) / static_cast<double>(shapes.size());
    if (base / best < worst) {
      worst = base / best;
      worst_shape = shape;
    }
    best_fused_logs += std::log(best / best_fused) / static_cast<double>(shapes.size());
  }
  std::printf("\ngeometric means over %zu shapes, against cublasLt\n", shapes.size());
  for (const auto& [name, log] : logs) {
    std::printf("  %-26s %.3f", name.c_str(), std::exp(log.first / log.second));
    if (log.second < static_cast<int>(shapes.size())) std::printf("  (over %d)", log.second);
    std::printf("\n");
  }
  std::printf("  %-26s %.3f\n", "best plain per shape", std::exp(best_logs));
  std::printf("  %-26s %.3f  %d x %d x %d\n", "its worst", worst, worst_shape.M, worst_shape.N,
              worst_shape.K);
  std::printf("  %-26s %.3f\n", "best fused / best plain", std::exp(best_fused_logs));
  return wrong;
}

}  // namespace
}  // namespace fuseline::bench

int main(int argc, char** argv) {
  fuseline::bench::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--check")
      options.check = true;
    else if (arg == "--ladder")
      options.ladder = true;
    else if (arg == "--decode")
      options.decode = true;
    else if (arg == "--small")
      options.small = true;
    else if (arg == "--time")
      options.time = true;
    else if (arg == "--only")
      options.only = value();
    else if (arg == "--out")
      options.out = value();
    else if (arg == "--profile")
      options.profile = options.time = true;
    else if (arg == "--shape") {
      fuseline::bench::Shape s{};
      if (std::sscanf(value().c_str(), "%d,%d,%d", &s.M, &s.N, &s.K) != 3) return 2;
      options.shapes.push_back(s);
    } else if (arg == "--burst")
      options.burst_ms = std::stod(value());
    else if (arg == "--replays")
      options.replays = std::stoi(value());
    else {
      std::fprintf(stderr, "unknown option %s\n", arg.c_str());
      return 2;
    }
  }
  try {
    return fuseline::bench::run(options) == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 70;
  }
}
