// A single product, as `gemm` is asked for it.
#pragma once

#include <optional>
#include <string>

#include "model/config/config.h"
#include "sim/block/estimate.h"
#include "sim/block/single_gemm.h"

namespace fuseline {

// What was said, before it is checked; absent = not said.
struct GemmWords {
  std::optional<std::string> m, n, k, gpu, dtype, weights, activations, operands, run, fidelity;
  bool bias = false;
};

struct GemmRequest {
  LibraryGemm gemm;
  Gpu gpu;
  Fidelity fidelity = Fidelity::hierarchy;
};

// InputError: a size or the GPU is missing, unknown words, formats that do not go together.
GemmRequest resolve_gemm(const GemmWords& words);

// Which work the bands of the product are taken of.
Workload bands_workload(const LibraryGemm& gemm);

// One kernel object, with bands unless the fidelity is roofline, which has none.
std::string gemm_json(const GemmRequest& request, const KernelEstimate& estimate);

}  // namespace fuseline
