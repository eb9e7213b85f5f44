// Library GEMMs while a kernel beside them keeps a buffer in the L2: does a smaller L2 change how
// many bytes come from DRAM? A few multiprocessors read the buffer again and again, so that it does
// not leave the L2 however long the GEMM takes, and the library has the other multiprocessors.
// l2_set_aside.cu does the same without such a kernel, and long GEMMs evict its buffer.
//
// The counters also count what the reader had to fetch from DRAM, so they say at most what the GEMM
// read. While the buffer fits, that is next to nothing: the reader takes gigabytes from it.
//
//   nvcc -O2 -std=c++17 -arch=sm_90a -o l2_polluted l2_polluted.cu -lcublas
//   ncu --replay-mode app-range --clock-control none --cache-control none --csv --metrics \
//     dram__bytes_read.sum,dram__bytes_write.sum ./l2_polluted
//
// Prints a CSV line for each range of counters, in the order of ncu's.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#define CHECK(call)                                                            \
  do {                                                                         \
    const auto status = (call);                                                \
    if (status != 0) {                                                         \
      std::fprintf(stderr, "%s: error %d\n", #call, static_cast<int>(status)); \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

struct Case {
  int m, n, k;  // y[m, n] = x[m, k] w[n, k]^T
};

constexpr Case kCases[] = {{2048, 12288, 4096},  {2048, 4096, 11008}, {8192, 4096, 4096},
                           {4096, 16384, 16384}, {8192, 8192, 8192},  {8192, 28672, 8192},
                           {2048, 32768, 16384}, {8192, 16384, 16384}};
constexpr int kReaders = 20;    // multiprocessors that read the buffer
constexpr int kCopies = 3;      // of every operand, used in turns: all of them come from DRAM
constexpr int kThreads = 1024;  // of a reader

// Normal enough: a hash, uniform in [-0.5, 0.5).
__global__ void fill(__nv_bfloat16* out, std::size_t count, unsigned seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    unsigned hash = static_cast<unsigned>(i) * 2654435761u + seed;
    hash = (hash ^ (hash >> 16)) * 2246822519u;
    hash ^= hash >> 13;
    out[i] = __float2bfloat16((static_cast<float>(hash & 0xffff) / 32768.f - 1.f) * 0.5f);
  }
}

struct Shared {
  unsigned ready, stop;
  unsigned long long passes;  // of the first reader over its part
};

struct Buffer {
  const char* data;
  std::size_t bytes;
};

// `kept` is read until `stop`, each reader its own part.
__global__ void __launch_bounds__(kThreads) keep(Buffer kept, Shared* shared, float* sink) {
  extern __shared__ char whole[];  // as much as there is: no other thread block fits beside it
  volatile Shared* state = shared;
  const float4* in = reinterpret_cast<const float4*>(kept.data);
  const std::size_t part = kept.bytes / sizeof(float4) / gridDim.x, first = part * blockIdx.x;
  constexpr std::size_t kStep = kThreads;
  float sum = 0;
  for (unsigned long long pass = 0;; ++pass) {
    for (std::size_t i = threadIdx.x; i < part; i += 8 * kStep) {
      float4 got[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const std::size_t wanted = i + j * kStep, at = wanted < part ? wanted : part - 1;
        asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(got[j].x), "=f"(got[j].y), "=f"(got[j].z), "=f"(got[j].w)
                     : "l"(in + first + at));
      }
#pragma unroll
      for (int j = 0; j < 8; ++j) sum += got[j].x + got[j].y + got[j].z + got[j].w;
    }
    if (threadIdx.x == 0 && pass == 1) atomicAdd(&shared->ready, 1u);
    if (threadIdx.x == 0 && blockIdx.x == 0) state->passes = pass + 1;
    if (state->stop != 0) break;
  }
  if (sum == 12345.678f) *sink = sum;
  if (sum == 12345.678f) whole[threadIdx.x] = 0;
}

// Where a profiler runs one kernel after the other the reader never gets ready: not for ever.
__global__ void wait_ready(volatile Shared* state, unsigned readers) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (state->ready < readers && now - begin < 1000000000ull);
}
__global__ void stop(volatile Shared* state) { state->stop = 1; }
__global__ void pause(long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (static_cast<long long>(now - begin) < nanoseconds);
}

class Sweep {
 public:
  Sweep() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    l2_ = static_cast<std::size_t>(device.l2CacheSize);
    most_ = static_cast<std::size_t>(device.persistingL2CacheMaxSize);
    rest_ = device.multiProcessorCount - kReaders;
    shared_bytes_ = static_cast<int>(device.sharedMemPerBlockOptin);
    std::fprintf(stderr,
                 "%s: L2 %zu bytes, at most %zu of them set aside; the library has %d SMs\n",
                 device.name, l2_, most_, rest_);
    CHECK(cublasCreate(&blas_));
    CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking));
    CHECK(cublasSetStream(blas_, stream_));
    CHECK(cublasSetSmCountTarget(blas_, rest_));
    CHECK(cudaMalloc(&workspace_, kWorkspace));
    CHECK(cublasSetWorkspace(blas_, workspace_, kWorkspace));
    std::size_t elements[3] = {};
    for (const Case& c : kCases) {
      elements[0] = std::max(elements[0], std::size_t(c.m) * c.k);
      elements[1] = std::max(elements[1], std::size_t(c.n) * c.k);
      elements[2] = std::max(elements[2], std::size_t(c.m) * c.n);
    }
    for (int i = 0; i < kCopies; ++i) {
      for (int j = 0; j < 3; ++j) {
        CHECK(cudaMalloc(&operands_[i][j], 2 * elements[j]));
        fill<<<1024, 256, 0, stream_>>>(operands_[i][j], elements[j],
                                        static_cast<unsigned>(3 * i + j));
      }
    }
    CHECK(cudaMalloc(&kept_, l2_));
    CHECK(cudaMemset(kept_, 0, l2_));
    CHECK(cudaMalloc(&shared_, sizeof(Shared)));
    CHECK(cudaMalloc(&sink_, sizeof(float)));
    CHECK(cudaFuncSetAttribute(keep, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_));
    for (const Case& c : kCases) gemm(c, 0);
    CHECK(cudaDeviceSynchronize());
  }

  void run() {
    std::printf("m,n,k,l2_bytes,kept_bytes,set_aside_bytes,gemms,gemm_sms,us,reader_passes\n");
    for (int eighth = 0; eighth <= 7; ++eighth) {
      kept_bytes_ = l2_ / 8 * eighth;
      aside_ = std::min(most_, kept_bytes_);
      CHECK(cudaCtxResetPersistingL2Cache());
      CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, aside_));
      measure({});  // what the reader does alone
      for (const Case& c : kCases) measure(c);
    }
  }

 private:
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;

  void set_window() {
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow = {kept_, aside_, 1.f, cudaAccessPropertyPersisting,
                                cudaAccessPropertyNormal};
    CHECK(cudaStreamSetAttribute(beside_, cudaStreamAttributeAccessPolicyWindow, &value));
  }

  // One range of counters: reader and GEMMs.
  void measure(const Case& c) {
    CHECK(cudaMemset(shared_, 0, sizeof(Shared)));
    set_window();
    const double flops = 2.0 * c.m * c.n * c.k;
    const int gemms = c.m == 0 ? 0 : static_cast<int>(std::clamp(2e12 / flops, 2.0, 6.0));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStart());
    keep<<<kReaders, kThreads, shared_bytes_, beside_>>>({kept_, kept_bytes_}, shared_, sink_);
    CHECK(cudaGetLastError());
    wait_ready<<<1, 1, 0, stream_>>>(shared_, kReaders);
    CHECK(cudaEventRecord(begin, stream_));
    if (gemms == 0) pause<<<1, 1, 0, stream_>>>(1000000);
    for (int i = 0; i < gemms; ++i) gemm(c, i % kCopies);
    CHECK(cudaEventRecord(end, stream_));
    stop<<<1, 1, 0, stream_>>>(shared_);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaProfilerStop());
    float ms = 0;
    CHECK(cudaEventElapsedTime(&ms, begin, end));
    Shared state;
    CHECK(cudaMemcpy(&state, shared_, sizeof(Shared), cudaMemcpyDeviceToHost));
    std::printf("%d,%d,%d,%zu,%zu,%zu,%d,%d,%.1f,%llu\n", c.m, c.n, c.k, l2_, kept_bytes_, aside_,
                gemms, rest_, 1e3 * ms, kept_bytes_ == 0 ? 0ull : state.passes);
    std::fflush(stdout);
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
  }

  void gemm(const Case& c, int copy) {
    const float one = 1, zero = 0;
    __nv_bfloat16* const* o = operands_[copy];
    CHECK(cublasGemmEx(blas_, CUBLAS_OP_T, CUBLAS_OP_N, c.n, c.m, c.k, &one, o[1], CUDA_R_16BF, c.k,
                       o[0], CUDA_R_16BF, c.k, &zero, o[2], CUDA_R_16BF, c.n, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT));
  }

  cublasHandle_t blas_ = nullptr;
  cudaStream_t stream_ = nullptr, beside_ = nullptr;
  __nv_bfloat16* operands_[kCopies][3] = {};
  char* kept_ = nullptr;
  void* workspace_ = nullptr;
  Shared* shared_ = nullptr;
  float* sink_ = nullptr;
  std::size_t l2_ = 0, most_ = 0, aside_ = 0, kept_bytes_ = 0;
  int rest_ = 0, shared_bytes_ = 0;
};

int main() {
  // A kernel that is loaded while the reader runs would wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  Sweep().run();
}
