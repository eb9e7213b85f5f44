// GEMMs as the tests of their model run them.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_model.h"
#include "sim/memory/l2_cache.h"

namespace fuseline::test {

inline Gpu hopper_like() {
  Gpu gpu;
  gpu.name = "test";
  gpu.sm_count = 132;
  gpu.sm_clock = Hertz(1.98e9);
  gpu.tensor_bf16 = FlopsPerSecond(989.4e12);
  gpu.tensor_fp8 = FlopsPerSecond(1978.9e12);
  gpu.hbm_bandwidth = BytesPerSecond(4.8e12);
  gpu.hbm_bandwidth_sustained = BytesPerSecond(4.5e12);
  gpu.l2_capacity = Bytes(60 << 20);
  gpu.l2_partitions = 2;
  gpu.l2_bandwidth = BytesPerSecond(9.7e12);
  gpu.tiny_kernel = microseconds(1.161);
  gpu.smem_per_block_max = Bytes(227 << 10);
  gpu.tdp = Watts(700);
  static const std::shared_ptr<const Architecture> hopper = load_architecture("hopper");
  set_architecture(gpu, hopper);
  return gpu;
}

inline GemmEstimate run(const GemmProblem& problem, const Gpu& gpu) {
  L2Cache cache(effective_l2_capacity(gpu));
  return simulate_gemm(problem, gpu, cache);
}

inline GemmProblem plain(std::int64_t m, std::int64_t n, std::int64_t k) {
  return plain_gemm(m, n, k, 1, 2, 3, 4);
}

inline Seconds total_time(const GemmEstimate& e) {
  return e.reduction ? e.time.time + e.reduction->time : e.time.time;
}

}  // namespace fuseline::test
