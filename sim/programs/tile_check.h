// Whether a GPU has a tile for each GEMM program: registers, shared memory, whole partials and
// groups of columns.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gemm_tile.h"
#include "model/programs/program_file.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// The mistakes of rule "tile", by their lines.
std::vector<Diagnosis> check_tiles(const ProgramFile& file, const Gpu& gpu);

// What a GEMM program's tile takes on chip.
struct TileBudget {
  GemmTile tile;
  std::int64_t accumulator_registers = 0;   // of a thread, 4 bytes each
  std::int64_t value_registers = 0;         // the most that the epilogue's values take at a time
  std::int64_t stage_bytes = 0;             // shared memory of the mainloop's stages
  std::int64_t epilogue_bytes = 0;          // of the tiles that the epilogue loads at a time
  std::int64_t shared_bytes_per_block = 0;  // that the GPU has
};
TileBudget tile_budget(const Plan& plan, const Program& program, const Gpu& gpu);

}  // namespace fuseline
