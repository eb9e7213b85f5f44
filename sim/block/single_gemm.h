// One GEMM of the vendor's library, by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Where a benchmark's repetitions find the operands.
// cold: every repetition has its own x, w and y, as when all buffers are rotated.
// rotating: x and y stay, and five copies of w take turns, as in tables of serving frameworks: a
//   product within a network, whose x the kernel before left in L2, whose w is another layer's, and
//   whose y is written where the last one was.
// hot: the same x, w and y each time.
enum class Operands : std::uint8_t { cold, rotating, hot };

// How long it goes on. benchmark: some milliseconds to some hundred, as published tables are timed;
// burst: too short for the power limit; sustained: for ever.
enum class Run : std::uint8_t { benchmark, burst, sustained };

const std::vector<std::string>& operand_words();  // in the order of the enumerators
const std::vector<std::string>& run_words();

// y[m,n] = x[m,k] w[n,k]^T, plus b[n] in the epilogue.
struct LibraryGemm {
  std::int64_t m = 0, n = 0, k = 0;
  Dtype dtype = Dtype::bf16;
  bool bias = false;
  StoredWeight weights{};      // the number format of w
  StoredWeight activations{};  // and of x
  Operands operands = Operands::cold;
  Run run = Run::benchmark;
};

// A plan of that one kernel.
Plan library_gemm_plan(const LibraryGemm& gemm);

// The kernel "gemm". A split-K reduction, a launch of its own, is added to it: `split_k` tells.
// InputError when byte or FLOP counts exceed 64 bits.
KernelEstimate estimate_library_gemm(const LibraryGemm& gemm, const Gpu& gpu,
                                     Fidelity fidelity = Fidelity::hierarchy);

}  // namespace fuseline
