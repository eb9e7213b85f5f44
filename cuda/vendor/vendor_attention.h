// Which attention programs are one call of the vendor's library. Needs neither a GPU nor the
// library.
#pragma once

#include <optional>

#include "model/graph.h"
#include "model/program.h"

namespace fuseline::cuda {

struct VendorAttention {
  bool masked = false;  // keys after the query's token are hidden; false: none is
  Operand out;
  std::optional<Operand> log_sum_exp;
};

// Forward attention in bf16 or fp16 over whole operands, heads of 8 to 128 columns. Empty: the
// gradient, a sliding window, rotations in the prologue, primitives behind it, or more tokens than
// one of a causal query over a cache that is longer.
std::optional<VendorAttention> vendor_attention(const Graph& graph, const Program& program);

}  // namespace fuseline::cuda
