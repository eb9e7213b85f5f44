// One GEMM of the vendor's library, by itself.
#pragma once

#include <cstdint>

#include "model/config/config.h"
#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// y[m,n] = x[m,k] w[n,k]^T, plus b[n] in the epilogue.
struct LibraryGemm {
  std::int64_t m = 0, n = 0, k = 0;
  Dtype dtype = Dtype::bf16;
  bool bias = false;
  StoredWeight weights{};      // the number format of w
  StoredWeight activations{};  // and of x
};

// A plan of that one kernel. Both operands are new in every repetition, as when buffers are
// rotated, so L2 holds neither.
Plan library_gemm_plan(const LibraryGemm& gemm);

// The kernel "gemm". A split-K reduction, a launch of its own, is added to it: `split_k` tells.
// InputError when byte or FLOP counts exceed 64 bits.
KernelEstimate estimate_library_gemm(const LibraryGemm& gemm, const Gpu& gpu,
                                     Fidelity fidelity = Fidelity::hierarchy);

}  // namespace fuseline
