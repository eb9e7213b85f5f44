// Library GEMMs while a part of the L2 is set aside for data that persists: does a smaller L2
// change how many bytes come from DRAM? Each GEMM follows a kernel that makes a buffer persist, and
// precedes one that reads it again, so that the counters also say how much of the buffer was still
// there.
//
//   nvcc -O2 -arch=sm_90a -o l2_set_aside l2_set_aside.cu -lcublas
//   ncu --clock-control none --cache-control none --csv --metrics \
//     dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum ./l2_set_aside
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

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
                           {4096, 16384, 16384}, {8192, 8192, 8192},  {8192, 57344, 8192},
                           {2048, 32768, 16384}, {8192, 16384, 16384}};

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

__global__ void read_all(const float4* in, std::size_t count, float* out) {
  float sum = 0;
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    sum += in[i].x + in[i].y + in[i].z + in[i].w;
  }
  if (sum == 12345.678f) *out = sum;  // never: keeps the loads
}

class Sweep {
 public:
  Sweep() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    most_ = static_cast<std::size_t>(device.persistingL2CacheMaxSize);
    std::printf("%s: L2 %d bytes, at most %zu of them set aside\n", device.name, device.l2CacheSize,
                most_);
    CHECK(cublasCreate(&blas_));
    CHECK(cudaStreamCreate(&stream_));
    CHECK(cublasSetStream(blas_, stream_));
    std::size_t elements = 0;
    for (const Case& c : kCases) {
      for (const auto [a, b] : {std::pair{c.m, c.k}, {c.n, c.k}, {c.m, c.n}})
        elements = std::max(elements, std::size_t(a) * b);
    }
    for (__nv_bfloat16** matrix : {&x_, &w_, &y_}) CHECK(cudaMalloc(matrix, 2 * elements));
    fill<<<1024, 256, 0, stream_>>>(x_, elements, 1);
    fill<<<1024, 256, 0, stream_>>>(w_, elements, 2);
    CHECK(cudaMalloc(&kept_, most_));
    CHECK(cudaMemset(kept_, 0, most_));
    CHECK(cudaMalloc(&sink_, sizeof(float)));
    CHECK(cudaDeviceSynchronize());
  }

  void run() {
    for (int quarter = 0; quarter <= 4; ++quarter) {
      aside_ = most_ / 4 * quarter;
      CHECK(cudaCtxResetPersistingL2Cache());
      CHECK(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, aside_));
      for (const Case& c : kCases) {
        for (int repeat = 0; repeat < 2; ++repeat) {
          make_persist();
          gemm(c);
          if (aside_ > 0) read_kept();
          CHECK(cudaStreamSynchronize(stream_));
        }
      }
    }
  }

 private:
  void read_kept() {
    read_all<<<264, 512, 0, stream_>>>(reinterpret_cast<const float4*>(kept_), aside_ / 16, sink_);
  }

  void make_persist() {
    if (aside_ == 0) return;
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow = {kept_, aside_, 1.f, cudaAccessPropertyPersisting,
                                cudaAccessPropertyStreaming};
    CHECK(cudaStreamSetAttribute(stream_, cudaStreamAttributeAccessPolicyWindow, &value));
    read_kept();
    read_kept();
    value.accessPolicyWindow.num_bytes = 0;
    CHECK(cudaStreamSetAttribute(stream_, cudaStreamAttributeAccessPolicyWindow, &value));
  }

  void gemm(const Case& c) {
    const float one = 1, zero = 0;
    CHECK(cublasGemmEx(blas_, CUBLAS_OP_T, CUBLAS_OP_N, c.n, c.m, c.k, &one, w_, CUDA_R_16BF, c.k,
                       x_, CUDA_R_16BF, c.k, &zero, y_, CUDA_R_16BF, c.n, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT));
  }

  cublasHandle_t blas_ = nullptr;
  cudaStream_t stream_ = nullptr;
  __nv_bfloat16 *x_ = nullptr, *w_ = nullptr, *y_ = nullptr;
  char* kept_ = nullptr;
  float* sink_ = nullptr;
  std::size_t most_ = 0, aside_ = 0;
};

int main() { Sweep().run(); }
