// Checks and times two products in one kernel (kernels/chain.cuh) beside two launches of cuBLASLt.
//
//   nvcc -std=c++20 -O2 -gencode=arch=compute_90a,code=sm_90a -I. -o chain_bench
//       cuda/bench/chain_bench.cu -lcublasLt -ldl
//   ./chain_bench check      odd sizes and shipped ones, outputs poisoned, against fp32 on the GPU
//   ./chain_bench            the same, then microseconds, in turns in one run
//
// The rival makes both products and no activation between them, which is in its favour.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "cublaslt.cuh"
#include "cuda/kernels/chain.cuh"
#include "cuda/kernels/epilogue/pair.cuh"
#include "cuda/kernels/epilogue/vector.cuh"

namespace fuseline::bench {
namespace {

using T = gpu::bf16;

// h = relu(y), or of pairs of columns SwiGLU.
template <int pairs>
struct Activation {
  struct Params {
    gpu::TileOut<T> h;
  };
  struct State {};
  static constexpr int slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params&, State&, const gpu::SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Slab& slab, const Tile& y) {
    if constexpr (pairs == 2) {
      store_tile(p.h, slab, gpu::swiglu(y));
    } else {
      Tile positive = y;
      for (float& v : positive.v) v = fmaxf(v, 0.0F);
      store_tile(p.h, slab, positive);
    }
  }
  template <class Element>
  static FUSELINE_DEVICE void keep(Params& p, Element* h, int ld, int cols) {
    p.h.data = h;
    p.h.ld = ld;
    p.h.cols = cols;
  }
};

struct Result {
  struct Params {
    gpu::TileOut<T> y;
  };
  struct State {};
  static constexpr int slab_groups = 8;
  template <class F>
  static FUSELINE_DEVICE void fetch(const Params&, F&&) {}
  static FUSELINE_DEVICE void begin(const Params&, State&, const gpu::SlabPlace&) {}
  template <class Slab, class Tile>
  static FUSELINE_DEVICE void run(const Params& p, State&, const Slab& slab, const Tile& y) {
    store_tile(p.y, slab, y);
  }
};

template <int pairs>
using Chained = gpu::Chain<T, Activation<pairs>, Result, pairs>;

template <int pairs>
__global__ void __launch_bounds__(Chained<pairs>::threads, 1)
    chain_kernel(const __grid_constant__ typename Chained<pairs>::Args args) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Chained<pairs>(args, shared).run();
}

struct Size {
  const char* name;
  int M, K, F, N, pairs;
};

template <int pairs>
class Chains {
 public:
  explicit Chains(const Size& s, int sets) : size_(s), arrived_(1) {
    cudaDeviceProp device{};
    FUSELINE_CUDA(cudaGetDeviceProperties(&device, 0));
    // As chain_layout of sim/kernels/chain_kernel.cpp.
    constexpr int kPiece = 8;
    columns_ = gpu::ceil_div(gpu::ceil_div(s.F, kPiece), device.multiProcessorCount) * kPiece;
    blocks_ = gpu::ceil_div(s.F, columns_);
    const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * b; };
    parts_ = Buffer<float>(count(blocks_ * s.M, s.N));
    arrived_.zero();
    a_ = Buffer<T>(count(s.M, s.K));
    y_ = Buffer<T>(count(s.M, s.N));
    fill_normal(a_, 1);
    for (int i = 0; i < sets; ++i) {
      b_.emplace_back(count(s.F * pairs, s.K));
      c_.emplace_back(count(s.N, s.F));
      fill_normal(b_.back(), 2 + 2 * i, 1 / std::sqrt(static_cast<float>(s.K)));
      fill_normal(c_.back(), 3 + 2 * i, 1 / std::sqrt(static_cast<float>(s.F)));
    }
    shared_ = Chained<pairs>::shared_bytes(s.K, columns_, s.M);
    FUSELINE_CUDA(cudaFuncSetAttribute(chain_kernel<pairs>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize, shared_));
  }

  void launch(int set, cudaStream_t stream) {
    const auto i = static_cast<std::size_t>(set);
    typename Chained<pairs>::Args args{};
    args.a = a_.data();
    args.b = b_[i].data();
    args.c = c_[i].data();
    args.parts = parts_.data();
    args.arrived = arrived_.data();
    args.M = size_.M;
    args.K = args.lda = args.ldb = size_.K;
    args.F = args.ldc = size_.F;
    args.N = size_.N;
    args.columns = columns_;
    args.second.y.data = y_.data();
    args.second.y.ld = args.second.y.cols = size_.N;
    chain_kernel<pairs><<<blocks_, Chained<pairs>::threads, shared_, stream>>>(args);
    FUSELINE_CUDA(cudaGetLastError());
  }

  const Size& size() const { return size_; }
  const Buffer<T>& a() const { return a_; }
  const Buffer<T>& b(int set) const { return b_[static_cast<std::size_t>(set)]; }
  const Buffer<T>& c(int set) const { return c_[static_cast<std::size_t>(set)]; }
  const Buffer<T>& y() const { return y_; }

 private:
  Size size_;
  int columns_ = 0, blocks_ = 0, shared_ = 0;
  Buffer<T> a_, y_;
  std::vector<Buffer<T>> b_, c_;
  Buffer<float> parts_;
  Buffer<gpu::u32> arrived_;
};

// One element of h a thread, rounded to T as the kernel rounds it; then one of y.
__global__ void plain_first(const T* a, const T* b, T* h, Size s) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= s.M * s.F) return;
  const int m = i / s.F, f = i % s.F;
  float sums[2] = {};
  for (int p = 0; p < s.pairs; ++p)
    for (int k = 0; k < s.K; ++k)
      sums[p] += gpu::to_float(a[static_cast<std::size_t>(m) * s.K + k]) *
                 gpu::to_float(b[static_cast<std::size_t>(f * s.pairs + p) * s.K + k]);
  const float g = sums[0];
  h[i] = gpu::from_float<T>(s.pairs == 2 ? g / (1 + expf(-g)) * sums[1] : fmaxf(g, 0.0F));
}
__global__ void plain_second(const T* h, const T* c, float* y, Size s) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= s.M * s.N) return;
  const int m = i / s.N, n = i % s.N;
  float sum = 0;
  for (int f = 0; f < s.F; ++f)
    sum += gpu::to_float(h[static_cast<std::size_t>(m) * s.F + f]) *
           gpu::to_float(c[static_cast<std::size_t>(n) * s.F + f]);
  y[i] = sum;
}

// Relative L2 error of y after several launches: the counter goes on from one to the next.
template <int pairs>
bool check(const Size& s) {
  Chains<pairs> chain(s, 1);
  const Buffer<T> h(static_cast<std::size_t>(s.M) * s.F);
  const Buffer<float> right(static_cast<std::size_t>(s.M) * s.N);
  plain_first<<<gpu::ceil_div(s.M * s.F, 128), 128>>>(chain.a().data(), chain.b(0).data(), h.data(),
                                                      s);
  plain_second<<<gpu::ceil_div(s.M * s.N, 128), 128>>>(h.data(), chain.c(0).data(), right.data(),
                                                       s);
  bool good = true;
  const std::vector<float> want = right.host();
  for (int launch = 0; launch < 3; ++launch) {
    chain.y().poison();
    chain.launch(0, nullptr);
    FUSELINE_CUDA(cudaDeviceSynchronize());
    const std::vector<T> got = chain.y().host();
    double off = 0, all = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double d = static_cast<double>(static_cast<float>(got[i])) - want[i];
      off += d * d;
      all += static_cast<double>(want[i]) * want[i];
    }
    // y is rounded to bf16, 2^-9 of each element at most. A few elements of h are rounded the other
    // way, because their sums have another order: each is 2^-8 off and one of F.
    const double error = std::sqrt(off / all);
    if (!(all > 0) || !(error < 0x1p-8)) good = false;
    if (launch == 2 || !good)
      std::printf("%-28s M %d, K %d, F %d, N %d: relative error %.1e %s\n", s.name, s.M, s.K, s.F,
                  s.N, error, good ? "pass" : "FAIL");
    if (!good) break;
  }
  return good;
}

bool check_size(const Size& s) { return s.pairs == 2 ? check<2>(s) : check<1>(s); }

template <int pairs>
void time(const Size& s) {
  const double bytes = 2.0 * s.F * (static_cast<double>(s.K) * pairs + s.N);
  const int sets = std::max(2, static_cast<int>(std::ceil(5e8 / bytes)));  // beyond any L2
  Chains<pairs> chain(s, sets);
  CublasLt first, second;
  const Buffer<T> h(static_cast<std::size_t>(s.M) * s.F * pairs);
  const Buffer<T> y(static_cast<std::size_t>(s.M) * s.N);
  fill_normal(h, 9);
  first.plan(s.M, s.F * pairs, s.K, false, false, chain.a().data(), chain.b(0).data(), h.data());
  second.plan(s.M, s.N, s.F, false, false, h.data(), chain.c(0).data(), y.data());
  std::vector<Contender> all;
  all.push_back({"chain", [&](int i, cudaStream_t stream) { chain.launch(i, stream); }});
  all.push_back({"cuBLASLt, two launches", [&](int i, cudaStream_t stream) {
                   first.run(chain.a().data(), chain.b(i).data(), h.data(), stream);
                   second.run(h.data(), chain.c(i).data(), y.data(), stream);
                 }});
  time_alternating(all, sets, 4 * sets, 20);
  const double chained = median(all[0].times_us), apart = median(all[1].times_us);
  std::printf("%-28s M %d: chain %.1f us (%.2f TB/s), two launches %.1f us, gain %.3f\n", s.name,
              s.M, chained, bytes / chained * 1e-6, apart, apart / chained);
}

int run(bool only_check) {
  std::vector<Size> odd = {{"one piece a block", 1, 64, 1056, 128, 1},
                           {"an odd number of pieces", 3, 72, 1064, 132, 2},
                           {"fewer pieces than blocks", 8, 264, 40, 260, 1},
                           {"long rows", 2, 8192, 2048, 512, 2}};
  std::vector<Size> shipped;
  for (const int M : {1, 2, 4, 8}) {
    shipped.push_back({"tinyllama gate_up + down", M, 2048, 5632, 2048, 2});
    shipped.push_back({"gpt2-xl up + down", M, 1600, 6400, 1600, 1});
    shipped.push_back({"llama3-8b gate_up + down", M, 4096, 14336, 4096, 2});
    shipped.push_back({"deepseek-v3 shared expert", M, 7168, 2048, 7168, 2});
  }
  bool good = true;
  for (const std::vector<Size>* list : {&odd, &shipped})
    for (const Size& s : *list) good = check_size(s) && good;
  if (!good) return EXIT_FAILURE;
  if (!only_check)
    for (const Size& s : shipped) s.pairs == 2 ? time<2>(s) : time<1>(s);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace fuseline::bench

int main(int count, char** words) {
  try {
    return fuseline::bench::run(count > 1 && std::strcmp(words[1], "check") == 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}
