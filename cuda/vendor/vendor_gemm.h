// Which GEMM programs are one call of the vendor's library, and the parameters of that call. Needs
// neither a GPU nor the library.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/graph.h"
#include "model/program.h"

namespace fuseline::cuda {

// out = f(scale · a bᵀ + bias), added to what out holds when `accumulate`.
struct VendorGemm {
  double scale = 1;
  bool accumulate = false;
  bool gelu = false;                   // the tanh form, which is the library's
  std::optional<Operand> bias;         // along columns
  std::optional<Operand> before_gelu;  // GELU's input is stored too
  Operand out;
};

// Empty: the library has no such epilogue, or not with these types, or products add up in one
// result (`summed`).
std::optional<VendorGemm> vendor_gemm(const Graph& graph, const Program& program);
bool supports(const Graph& graph, const Program& program);

// Products first, first + step, ... of a batch, whose operands each lie at equal distances.
struct StridedBatch {
  std::int64_t first = 0, step = 1, count = 1;
};
// Element offsets of a, b and out of one product of the batch.
using BatchOffsets = std::array<std::int64_t, 3>;
// The fewest such batches with one step that together hold every product once.
std::vector<StridedBatch> strided_batches(std::span<const BatchOffsets> offsets);

}  // namespace fuseline::cuda
