// Two products in one kernel: y = g(a·B)·C, where h = g(a·B) stays on chip.
//
// Thread block i has some columns of h, which lie in its shared memory, and multiplies them with
// the same columns of C. That gives a part of every element of y. The parts are added in the order
// of the blocks, and then the epilogue of y runs. B and C are loaded once, h is not loaded or
// stored at all, and the parts of y go through L2. So such a kernel wins where y has few rows.
//
// In a plan the kernel has two programs, one for each product. The first one's store of h and the
// second one's load of it move nothing in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/target.h"

namespace fuseline {

// Rows of y: the parts that go through L2 grow with them, and a tile of mma.sync has so many.
inline constexpr std::int64_t most_chained_rows = 8;
// Columns of h come to thread blocks in pieces of 16 bytes, the widest load.
inline constexpr std::int64_t chained_piece = 8;

// The operators of each product, in dependency order.
struct Chain {
  std::vector<OpId> first, second;
};

// The two parts, where the operators hold two products and the later one may be chained (rewrite
// chain_products). Whether the kernel is legal is another question.
std::optional<Chain> parts_of_chain(const Graph& graph, const std::vector<OpId>& ops);

// Why the two parts are no such kernel, beyond what makes each of them a program; empty = they are.
std::string why_no_chain(const Graph& graph, const Chain& chain, const Target& target = {});

// What goes from the kernel's first program to its second one on chip: h. Nothing for kernels that
// are no chains.
std::optional<Operand> handed_over(const Kernel& kernel);

// Why the two programs of such a kernel, which somebody may have written by hand, do not belong
// together; empty = they do.
std::string why_not_handed_over(const Graph& graph, const Kernel& kernel);

}  // namespace fuseline
