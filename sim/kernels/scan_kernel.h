// A scan: thread blocks that walk the tokens of one head each, in chunks, with its state on chip.
#pragma once

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/stream_kernel.h"
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
};
ScanWalk scan_walk(const Program& program, const AddressMap& addresses, const Gpu& gpu);
WalkTraffic walk(const ScanWalk& scan, L2Cache& cache);
void describe(const ScanWalk& scan, WalkKey& key);

// Nothing of it was measured on a scan. `hbm`: what the walk moved.
ScanEstimate estimate_scan(const Program& program, const ScanWalk& walk, const Gpu& gpu,
                           HbmTraffic hbm);
ScanEstimate simulate_scan(const Program& program, const AddressMap& addresses, const Gpu& gpu,
                           L2Cache& cache);

// Time of the chunks on the SM that takes longest, without HBM and L2 as a whole. Chunks of a head
// come one after the other: each waits for its products or its bytes, whichever takes longer, and
// then for the steps between them. Heads on one SM fill each other's waiting, and share its tensor
// cores.
//   products  of a chunk: scores, result, the state's share of it, and the state's update, on tiles
//             of 16 rows; an exponential for each score. Step by step: 5·P·N operations a token in
//             fp32.
struct ScanTime {
  Seconds compute;  // products and exponentials of all heads that the SM takes
  Seconds chain;    // of the heads that it takes one after the other, all chunks with their waiting
};
//   gradient  of a chunk: the scores again, those of dy with x, their products with k, q and dy;
//             of the state and what the loss says of it four products. States are kept.
ScanTime scan_time(const ScanShape& shape, const Gpu& gpu, ElementSize element,
                   bool gradient = false);
// With a rate for every column of the state: a parallel prefix in every thread block. The gradient
// takes two, the states again and the way back, and seven products more.
ScanTime prefix_time(const ScanShape& shape, const Gpu& gpu, bool gradient = false);

}  // namespace fuseline
