// What every benchmark here needs: checked calls, buffers, random inputs, graph timing.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fuseline::bench {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}
#define FUSELINE_CUDA(call) ::fuseline::bench::check((call), #call)

// Device memory of `count` elements.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : count_(count) {
    FUSELINE_CUDA(cudaMalloc(&data_, count * sizeof(T)));
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~Buffer() { cudaFree(data_); }
  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  // Every bit set: NaN in all floating-point formats.
  void poison() const { FUSELINE_CUDA(cudaMemset(data_, 0xff, count_ * sizeof(T))); }
  void zero() const { FUSELINE_CUDA(cudaMemset(data_, 0, count_ * sizeof(T))); }
  std::vector<T> host() const {
    std::vector<T> out(count_);
    FUSELINE_CUDA(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

// Normal random numbers (Box-Muller over a counter-based hash), times `scale`.
__device__ inline unsigned hash(unsigned x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  return x ^ (x >> 16);
}
template <class T>
__global__ void fill_normal_kernel(T* data, std::size_t count, unsigned seed, float scale) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const auto low = static_cast<unsigned>(i);
    const auto high = static_cast<unsigned>(i >> 32);
    const unsigned a = hash(low * 2U + hash(seed + high));
    const unsigned b = hash(low * 2U + 1U + hash(seed + high));
    const float u = (static_cast<float>(a >> 8) + 0.5F) * 0x1p-24F;
    const float angle = 6.2831853F * (static_cast<float>(b >> 8) * 0x1p-24F);
    data[i] = T(scale * sqrtf(-2.0F * logf(u)) * cosf(angle));
  }
}
template <class T>
void fill_normal(const Buffer<T>& buffer, unsigned seed, float scale = 1.0F) {
  fill_normal_kernel<<<1024, 256>>>(buffer.data(), buffer.size(), seed, scale);
  FUSELINE_CUDA(cudaGetLastError());
}

// Clock and power of the GPU, sampled in the background through the management library if it is
// there: at large sizes the card is limited by power, and a time says little without its clock.
class Sampler {
 public:
  Sampler() {
    library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library_ == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library_, "nvmlInit_v2"));
    const auto handle = reinterpret_cast<int (*)(unsigned, void**)>(
        dlsym(library_, "nvmlDeviceGetHandleByIndex_v2"));
    clock_ =
        reinterpret_cast<int (*)(void*, int, unsigned*)>(dlsym(library_, "nvmlDeviceGetClockInfo"));
    power_ =
        reinterpret_cast<int (*)(void*, unsigned*)>(dlsym(library_, "nvmlDeviceGetPowerUsage"));
    ready_ = init != nullptr && handle != nullptr && clock_ != nullptr && power_ != nullptr &&
             init() == 0 && handle(0, &device_) == 0;
  }
  ~Sampler() { stop(); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start() {
    if (!ready_) return;
    running_ = true;
    thread_ = std::thread([this] {
      while (running_) {
        unsigned mhz = 0;
        unsigned mw = 0;
        if (clock_(device_, 1, &mhz) == 0 && power_(device_, &mw) == 0) {
          clock_mhz_ += mhz;
          power_w_ += mw * 1e-3;
          ++samples_;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  }
  struct Mean {
    double clock_mhz = 0, power_w = 0;
  };
  // Means since start().
  Mean stop() {
    running_ = false;
    if (thread_.joinable()) thread_.join();
    const Mean mean = samples_ > 0 ? Mean{clock_mhz_ / samples_, power_w_ / samples_} : Mean{};
    clock_mhz_ = power_w_ = 0;
    samples_ = 0;
    return mean;
  }

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  bool ready_ = false;
  std::atomic<bool> running_ = false;
  std::thread thread_;
  double clock_mhz_ = 0, power_w_ = 0;
  int samples_ = 0;
};

// One contender: `launch(i, stream)` runs it on the i-th set of rotated buffers.
struct Contender {
  std::string name;
  std::function<void(int, cudaStream_t)> launch;
  std::vector<float> times_us{};  // per launch, one entry per replay
  std::vector<float> clocks_mhz{}, powers_w{};
};

inline double median(std::vector<float> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v.size() % 2 == 1 ? v[v.size() / 2] : 0.5 * (v[v.size() / 2 - 1] + v[v.size() / 2]);
}

// Times all contenders in turn, `replays` rounds of a CUDA graph of `launches` launches each.
inline void time_alternating(std::vector<Contender>& contenders, int sets, int launches,
                             int replays) {
  cudaStream_t stream;
  FUSELINE_CUDA(cudaStreamCreate(&stream));
  cudaEvent_t begin, end;
  FUSELINE_CUDA(cudaEventCreate(&begin));
  FUSELINE_CUDA(cudaEventCreate(&end));
  Sampler sampler;
  std::vector<cudaGraphExec_t> graphs;
  for (Contender& c : contenders) {
    c.launch(0, stream);  // loads modules outside the capture
    FUSELINE_CUDA(cudaStreamSynchronize(stream));
    cudaGraph_t graph;
    FUSELINE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < launches; ++i) c.launch(i % sets, stream);
    FUSELINE_CUDA(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    FUSELINE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    FUSELINE_CUDA(cudaGraphDestroy(graph));
    graphs.push_back(exec);
  }
  for (int r = -2; r < replays; ++r) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      sampler.start();
      FUSELINE_CUDA(cudaEventRecord(begin, stream));
      FUSELINE_CUDA(cudaGraphLaunch(graphs[i], stream));
      FUSELINE_CUDA(cudaEventRecord(end, stream));
      FUSELINE_CUDA(cudaStreamSynchronize(stream));
      float ms = 0;
      FUSELINE_CUDA(cudaEventElapsedTime(&ms, begin, end));
      const Sampler::Mean mean = sampler.stop();
      if (r < 0) continue;
      contenders[i].times_us.push_back(ms * 1e3F / static_cast<float>(launches));
      contenders[i].clocks_mhz.push_back(static_cast<float>(mean.clock_mhz));
      contenders[i].powers_w.push_back(static_cast<float>(mean.power_w));
    }
  }
  for (cudaGraphExec_t g : graphs) cudaGraphExecDestroy(g);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
}

}  // namespace fuseline::bench
