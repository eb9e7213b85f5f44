// A scan: thread blocks that take the tokens of one head, or of some columns of it, with the state
// on chip: in chunks on the tensor cores, or token by token.
#pragma once

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/scan_chunks.h"
#include "sim/kernels/scan_gradient_shape.h"
#include "sim/kernels/stream_kernel.h"
#include "sim/kernels/walk_key.h"
#include "sim/kernels/walk_memo.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

struct ScanEstimate {
  HbmTraffic hbm;
  Bytes l2;    // what thread blocks load and store: k and q once for every head that shares them
  Bytes smem;  // of these what the products take from shared memory
  Seconds tensor_time, wait_time, hbm_time, l2_time;
  Seconds work;  // what the kernel adds to the time of an empty one
  Bound bound = Bound::tensor;
};

// What a scan moves: heads of one sequence are about as far at any time, so rows of all operands go
// through the cache together, once; states come before and after. Empty ones move nothing.
struct ScanWalk {
  StreamWalk before, during, after;
  CachedSlice x, k, q;
  std::optional<ChunkLayout> chunks{};  // without it, token by token
  // Of the operators behind the scan (the body), beside the scan's result and what it has loaded
  // anyway.
  Bytes body;  // that they load and store
  bool body_loads = false;
};
ScanWalk scan_walk(const Graph& graph, const Program& program, const AddressMap& addresses,
                   const Gpu& gpu);
WalkTraffic walk(const ScanWalk& scan, L2Cache& cache);
void describe(const ScanWalk& scan, WalkKey& key);

// `hbm`: what the walk moved. `library`: a framework's library computes it; where every column of
// the state has a rate that is a parallel prefix, which nobody measured. Our own kernels were.
ScanEstimate estimate_scan(const Program& program, const ScanWalk& walk, const Gpu& gpu,
                           HbmTraffic hbm, bool library);

// Time without HBM and L2 as a whole.
struct ScanTime {
  Seconds compute;  // products, or instructions, of all that the SM takes
  Seconds chain;    // all tokens one after the other, with what waits for each other
};
// Chunks of 64 tokens come one after the other: each waits for its products or its bytes, whichever
// takes longer, and then for what is no product: factors, the body, the barrier. An SM takes one
// thread block at a time.
ScanTime chunk_time(const ScanShape& shape, const ChunkLayout& layout, const Gpu& gpu,
                    bool gradient = false);
// Token by token, all columns side by side. The gradient walks twice: the states again, and back.
ScanTime walk_time(const ScanShape& shape, const Gpu& gpu, bool gradient = false);
// Our own gradient (cuda/kernels/scan/gradient.cuh), thread blocks as laid out. A token waits for
// the tokens before it (scan.gradient_step_us), and the warps of a multiprocessor issue
// scan.gradient_instructions for each number of their states.
ScanTime own_gradient_time(const ScanMainloop& scan, const ScanGradientLayout& layout,
                           const Gpu& gpu);
// With a rate for every column of the state: a parallel prefix in every thread block. The gradient
// takes two, the states again and the way back, and seven products more.
ScanTime prefix_time(const ScanShape& shape, const Gpu& gpu, bool gradient = false);

}  // namespace fuseline
