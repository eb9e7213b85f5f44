// A GEMM program's body as the epilogue struct that both mainloops of cuda/kernels run (the
// contract: cuda/kernels/README.md). One primitive becomes one call.
#pragma once

#include <string>
#include <vector>

#include "cuda/emit/fields.h"
#include "model/program.h"

namespace fuseline::cuda {

struct EpilogueSource {
  std::string text;                   // struct NAME { ... };
  std::vector<Field> fields;          // of its Params, in order
  bool reduces_columns = false;       // wants tiles of 128 rows, 16 a warp
  std::int64_t row_partial_cols = 0;  // tiles must be a multiple of so many accumulator columns
  // Groups of 8 accumulator columns that the body sees at once: 8, or 4 where whole values of 64
  // columns would not fit the registers beside the accumulators.
  int slab_groups = 8;
  // The most registers that a thread's tile values take at one time, the accumulators left out.
  int live_registers = 0;
  // What a slab loads: boxes of tile rows x 64 columns, and vectors.
  int tile_loads = 0, col_loads = 0;
};

// InternalError: the program is no GEMM's, or holds a primitive that no epilogue has.
EpilogueSource epilogue_source(const Graph& graph, const Program& program,
                               const std::string& struct_name);

}  // namespace fuseline::cuda
