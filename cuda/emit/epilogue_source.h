// A GEMM program's body as the epilogue struct that both mainloops of cuda/kernels run (the
// contract: cuda/kernels/README.md). One primitive becomes one call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/emit/fields.h"
#include "model/program.h"
#include "sim/kernels/epilogue_needs.h"

namespace fuseline::cuda {

struct EpilogueSource {
  std::string text;           // device functions of primitives, then struct NAME { ... };
  std::vector<Field> fields;  // of its Params, in order
  EpilogueNeeds needs;
  // Tiles must be a multiple of so many columns: groups that a pass ahead of the epilogue sums up.
  std::int64_t gathered_cols = 1;
};

// InternalError: the program is no GEMM's, or holds a primitive that no epilogue has.
// `slab_groups`: that the epilogue sees at once; 0: what its needs say.
EpilogueSource epilogue_source(const Graph& graph, const Program& program,
                               const std::string& struct_name, int slab_groups = 0);

}  // namespace fuseline::cuda
