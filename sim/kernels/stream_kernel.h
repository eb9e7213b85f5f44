// Kernels without a tensor-core mainloop: element-wise kernels, norms, reductions, concatenations
// and finishers, of a framework, of a compiler or our own. They move their operands once. How fast
// they are depends on how their code is made.
#pragma once

#include <cstdint>
#include <vector>

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/column_threads.h"
#include "sim/kernels/kernel_estimate.h"
#include "sim/kernels/program_streams.h"
#include "sim/kernels/row_threads.h"
#include "sim/kernels/walk_key.h"
#include "sim/kernels/walk_memo.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

// Steps of a warp that wait for each other (model/primitives/shapes.h).
struct ChainedSteps {
  std::int64_t loads = 0, choices = 0, searches = 0;
  std::int64_t rows = 32;  // of a warp that searches
};

struct StreamKernel {
  Implementation implementation = Implementation::vectorized;
  std::vector<Stream> streams;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool whole_rows = false;      // one thread block has a row at a time
  std::int64_t each = 1;        // terms of an element, or numbers that one thread block sorts
  std::int64_t row_blocks = 0;  // thread blocks of a framework's norm, each a row or a head of one
  // Rows that one thread block of our own walks down, each with so many dependent steps; 0: none.
  std::int64_t walked_rows = 0, walked_steps = 0;
  RowThreads walkers{};  // that have a row
  // Our own walk down columns; no threads: it is none.
  ColumnThreads columns{.threads = 0};
  ColumnSums column_sums{};
  std::int64_t column_terms = 0;  // tiles that it loads, or sums that it makes if they are more
  ChainedSteps chained{};
  double instructions = 0;  // issued per element by one lane
  double step_factor = 1;   // latency of a row step over that of a sum of squares
  [[nodiscard]] std::int64_t elements()
      const;  // of the rows; else of the larger side, loaded or stored
};

// What a launch of a framework is, beside the operators of a plan.
StreamKernel stream_kernel_of(const FrameworkLaunch& launch, const Kernel& kernel,
                              const AddressMap& addresses, const Gpu& gpu);

StreamKernel stream_kernel_of(const Graph& graph, const Kernel& kernel, const Program& program,
                              const AddressMap& addresses, const Gpu& gpu);

struct StreamEstimate {
  HbmTraffic hbm;
  Bytes l2;
  Seconds hbm_time, l2_time, issue_time, latency;
  Seconds work;              // what one kernel adds to the time of an empty one
  Bound bound = Bound::hbm;  // smem: the SMs' own limits, here instruction issue
};

// Moves the streams through the cache, as many rows at a time as are resident on the GPU, loads
// before stores, and times them:
//   work = max(HBM bytes / rate + share found in L2 × L2 bytes / rate,
//              elements × instructions / issue rate,
//              latency) + what misses add to latency
// Our own walks down columns: max(the first two, steps) + what starts and ends them.
// Where the L2 has two partitions, half of the accesses cross from one to the other. Their bytes
// count twice in the L2 bytes.
StreamEstimate simulate_stream(const StreamKernel& kernel, const Gpu& gpu, L2Cache& cache);

// What simulate_stream() says of a kernel that moves this.
StreamEstimate estimate_stream(const StreamKernel& kernel, const Gpu& gpu,
                               const WalkTraffic& traffic);

// All that decides which chunks streams touch, and in which order.
struct StreamWalk {
  std::vector<Stream> streams;
  std::int64_t rows = 0;
  std::int64_t rows_at_once = 1;  // resident on the GPU together
};
StreamWalk stream_walk(const StreamKernel& kernel, const Gpu& gpu);
// Returns the largest share of one loaded stream that L2 did not hold.
double touch_all(const StreamWalk& streams, L2Cache& cache);
WalkTraffic walk(const StreamWalk& streams, L2Cache& cache);
void describe(const StreamWalk& streams, WalkKey& key);
void describe(const CachedSlice& slice, WalkKey& key);

// Lane-instructions per second of the whole GPU: 4 warps a clock and SM.
double issue_rate(const Gpu& gpu);

// L2 bytes per byte that a stream loads or stores.
double l2_crossing(const Gpu& gpu);

}  // namespace fuseline
