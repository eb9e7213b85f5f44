// Lowering: the operators of one kernel become its program.
#pragma once

#include <string>
#include <vector>

#include "model/program.h"

namespace fuseline {

// The program that computes `ops` (in dependency order): the mainloop of a GEMM, of attention or of
// a scan when there is one among them, resident rows when an operator needs a full row, else a
// stream of tiles. What other operators of the graph read is stored; the rest stays on chip.
// InternalError when the operators cannot share a program (why_not.h says which can).
Program lower(const Graph& graph, const std::string& name, const std::vector<OpId>& ops);

// The programs of a kernel: that one, or one for each product of a chain (chain.h), of which the
// second has its product's name.
std::vector<Program> lower_kernel(const Graph& graph, const std::string& name,
                                  const std::vector<OpId>& ops);

// The same operators in another order: those that the GEMM's mainloop does not need come after it.
// Such an operator computes a value again from operands that the epilogue holds.
std::vector<OpId> mainloop_first(const Graph& graph, const std::vector<OpId>& ops);

}  // namespace fuseline
