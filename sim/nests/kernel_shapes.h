// Kernels of a plan as products and chains with sizes and bytes.
#pragma once

#include <optional>
#include <vector>

#include "model/plan.h"
#include "sim/nests/chain_traffic.h"
#include "sim/nests/product_traffic.h"

namespace fuseline {

// The product of a kernel. Empty: it has none, or one for groups of rows of unequal lengths.
std::optional<ProductShape> product_of(const Graph& graph, const Kernel& kernel);
// The product of an operator by itself, with the bytes of its operands.
std::optional<ProductShape> product_of(const Graph& graph, const Op& op);
// Attention: scores and context of the queries that share a head of keys.
std::optional<ChainShape> attention_of(const Graph& graph, const Kernel& kernel);
// Two kernels whose second product multiplies what the first one stores, and all of it.
std::optional<ChainShape> chain_of(const Plan& plan, const Kernel& first, const Kernel& second);

}  // namespace fuseline
