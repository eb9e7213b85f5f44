// What a plan is made for: the budgets of one thread block, as plain data. A GPU gives its own
// (sim/gpu/plan_target.h).
#pragma once

#include <cstdint>
#include <string>

#include "model/gemm_tile.h"

namespace fuseline {

struct Target {
  std::string name;  // of the GPU; empty where a plan is made for none
  // Shared memory that one thread block may have: 227 KiB is compute capability 9.0's (CUDA C++
  // Programming Guide 12.8).
  std::int64_t shared_bytes_per_block = 227 * 1024;
  // The tile whose mainloop an epilogue program shares the block with; `stages` of its operands are
  // in shared memory at a time.
  GemmTile tile = {.m = 128, .n = 128, .k = 64, .stages = 3};

  // bf16 operands.
  [[nodiscard]] std::int64_t stage_bytes() const {
    return tile.stages * (tile.m + tile.n) * tile.k * 2;
  }
  // One operand of an epilogue for one tile.
  [[nodiscard]] std::int64_t tile_bytes() const { return tile.m * tile.n * 2; }
  // Epilogue operands that fit beside the stages.
  [[nodiscard]] std::int64_t operand_tiles() const {
    return (shared_bytes_per_block - stage_bytes()) / tile_bytes();
  }
};

}  // namespace fuseline
