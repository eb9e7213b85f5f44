// The kernels that a GEMM program can become on our own mainloop.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "cuda/compile/compiler.h"
#include "cuda/emit/kernel_source.h"
#include "model/gemm_tile.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

// A tile, and the kernel that it becomes.
struct TileKernel {
  GemmTile tile;
  GemmKernelSource source;
  std::string name;     // "gate_up, tile 128 x 256, cluster 2, 1 parts"
  Seconds predicted{};  // by the estimate that chooses among tiles
};

// First the chosen tile's, then those of the target's menu that fit the program, whole and in as
// many parts along K as are predicted fastest. Where several tiles become the same kernel, it is
// there once.
std::vector<TileKernel> tile_kernels(const Plan& plan, const Program& program, const Gpu& gpu,
                                     SmTarget target);

}  // namespace fuseline::cuda
