// Two products in one kernel (model/chain.h): how the GPU's thread blocks share them, what that
// moves, and how long it takes. Nobody has measured such a kernel.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/memory/l2_cache.h"
#include "sim/memory/tile_shape.h"

namespace fuseline {

// Thread block i has columns [i·columns, (i + 1)·columns) of h, and one block is on each SM.
struct ChainLayout {
  std::int64_t blocks = 0;
  std::int64_t columns = 0;        // of h
  std::int64_t first_columns = 0;  // of the first product: twice as many where pairs become one
  [[nodiscard]] TileShape first_tile() const;
  [[nodiscard]] TileShape second_tile() const;  // in which the parts of y are added up
};

// Nothing for kernels that are no chains. Columns come in pieces of 8, and every block but the last
// has equally many.
std::optional<ChainLayout> chain_layout(const Kernel& kernel, const Gpu& gpu);
std::optional<ChainLayout> chain_layout(const Kernel& kernel, std::int64_t sm_count);

// One of the kernel's two products: its weight goes through L2 once, and so does all that its
// epilogue moves. Not what is handed over on chip.
StreamWalk chain_walk(const Kernel& kernel, const Program& program, const AddressMap& addresses,
                      const Gpu& gpu);

struct ChainEstimate {
  Seconds work;     // what the kernel adds to the time of an empty one
  Seconds compute;  // the part of it that follows the clock
  Seconds tensor_time, hbm_time, l2_time, smem_time;
  Bytes l2;    // weights, a once for each block, parts of y stored and loaded, epilogues
  Bytes smem;  // a and h from shared memory, as the products take them
  Bound bound = Bound::hbm;
};

// `hbm`: what both walks moved. work is the sum of
//   start      as of any product of ours
//   stream     both weights, by the slowest of HBM, the fullest SM's share from L2 and the tensor
//              cores; the loads of the second weight follow those of the first
//   hand-over  h is complete in its block when its last loads are there. Few loads are under way
//              meanwhile, which takes as long as a start whose operands are not in L2 takes longer
//   barrier    parts of y are complete in all blocks
//   sum        parts of y to L2, and from there as the parts of a product that is split along K
//   epilogues  of both products
ChainEstimate estimate_chain(const Kernel& kernel, const Gpu& gpu, HbmTraffic hbm);

// Into the estimate of the kernel, whose HBM bytes are there already.
void describe_chain(const ChainEstimate& chain, KernelEstimate& estimate);

}  // namespace fuseline
