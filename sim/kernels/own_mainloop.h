// What the simulator knows of our own Hopper mainloop (cuda/kernels/sm90) and not of the library's
// kernels: how its copy engine fetches, how deep its ring of stages is, how busy the GPU is.
#pragma once

#include <cstdint>

#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_problem.h"

namespace fuseline {

// Whether the kernel is that mainloop.
bool is_own_hopper(const GemmProblem& problem, const Gpu& gpu);

// Whether its two consumers make a tile each in turns, so that one multiplies while the other has
// its epilogue.
bool takes_turns(const GemmTile& tile);

// Requests of 128 bytes for one k step of a tile: those that one thread block sends, and those that
// come into its shared memory. In a cluster each block asks for a part of the shared operand, and
// all of it comes. A row that does not begin at a line of L2 takes two requests.
struct StepRequests {
  double sent = 0, received = 0;
};
StepRequests step_requests(const GemmProblem& problem, const GemmTile& tile);

// Of what a kernel's thread blocks ask L2 for, the share that reaches it (gemm_raster.h). 1 where
// rows lie between its lines, of clusters along K, and of those of codes or whose tiles are made in
// turns, which showed nothing of it.
double reaching_share(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// Stages of the ring in shared memory (cuda/kernels/sm90/layout.cuh).
std::int64_t ring_stages(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

// Of the multiprocessors the share that has a tile, on average over the kernel's rounds.
double busy_share(const GemmProblem& problem, const GemmTile& tile, const Gpu& gpu);

}  // namespace fuseline
