// Products in our own mainloop, simulated in a tile of the test's choice.
#pragma once

#include <cstdint>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline::test {

inline GemmProblem own_product(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmProblem problem = plain_gemm(m, n, k, 1, 2, 3, 4);
  problem.library = false;
  problem.needs.only_stores = true;
  return problem;
}

inline double simulated_us(GemmProblem problem, const GemmTile& tile, const Gpu& gpu) {
  problem.tile = tile;
  L2Cache cache(effective_l2_capacity(gpu));
  return to_us(simulate_gemm(problem, gpu, cache).time.time);
}

}  // namespace fuseline::test
