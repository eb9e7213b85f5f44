// Which GEMM programs are one call of the vendor's library, and the parameters of that call. Needs
// neither a GPU nor the library.
#pragma once

#include <optional>

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

}  // namespace fuseline::cuda
