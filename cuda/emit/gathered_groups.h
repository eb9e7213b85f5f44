// Sums over heads in a GEMM's epilogue: within a slab where it holds whole heads, else by a pass
// over the tile ahead of the epilogue (kernels/epilogue/gather.cuh).
#pragma once

#include <set>
#include <string>

#include "model/primitives/primitives.h"
#include "model/program.h"

namespace fuseline::cuda {

// The value, and all values from which it is made.
std::set<Value> needed_for(const Program& program, Value v);

// What no epilogue has of primitive `index` of a GEMM's body, a GroupReduce; "": nothing.
std::string groups_not_built(const Program& program, std::size_t index);

}  // namespace fuseline::cuda
