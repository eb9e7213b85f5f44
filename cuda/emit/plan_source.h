// The CUDA sources of a plan's kernels, with the tiles that the simulator chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/compile/compiler.h"
#include "cuda/emit/chain_source.h"
#include "model/gemm_tile.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"

namespace fuseline::cuda {

// Which kernels a GPU runs: Hopper's its own, all others Ampere's.
SmTarget target_of(const Gpu& gpu);

// The tile that the simulator chooses for a GEMM program on our own mainloop.
GemmTile own_tile(const Plan& plan, const Program& program, const Gpu& gpu);

// Sources of one kernel in the order of their launches; library GEMMs as our own mainloop has them.
// MissingError: no code of ours runs the kernel, named.
std::vector<Source> kernel_sources(const Plan& plan, const Kernel& kernel, const Gpu& gpu,
                                   SmTarget target);

// Of a kernel that is a chain of two products (model/chain.h), for a GPU with so many SMs.
// MissingError: no code of ours runs it, named.
ChainKernelSource chain_of(const Plan& plan, const Kernel& kernel, std::int64_t sm_count,
                           std::int64_t shared_bytes_per_block);

// "Policy coda, kernel gate_up."
std::string title_of(const Plan& plan, const Kernel& kernel);
// MissingError unless the kernel has one phase.
const Program& only_program(const Plan& plan, const Kernel& kernel);

}  // namespace fuseline::cuda
