// Who is told what happens in an L2 while kernels are walked through it: for pictures of it.
// Nothing is predicted from what a watcher sees.
#pragma once

#include <cstdint>

#include "base/units.h"

namespace fuseline {

class L2Cache;

// What of a walk runs at the same time.
struct WalkStep {
  enum class Kind : std::uint8_t {
    units,  // of a GEMM's schedule: one wave
    sums,   // all partial sums of a split K, which a launch behind the GEMM adds up
    rows,   // of element-wise kernels, norms, reductions
    heads,  // key/value heads of all sequences
  };
  Kind kind = Kind::rows;
  std::int64_t begin = 0, end = 0;  // half-open
  std::int64_t of = 1;              // there are so many in all
  Bytes asked{};                    // of L2, each byte once; a wave says it elsewhere (GemmWave)
};

class L2Watcher {
 public:
  L2Watcher() = default;
  L2Watcher(const L2Watcher&) = delete;
  L2Watcher& operator=(const L2Watcher&) = delete;
  virtual ~L2Watcher() = default;

  // The step is over, and the cache holds what it left.
  virtual void step_ends(const WalkStep& step, const L2Cache& cache) = 0;
};

// A chunk of which something is in the cache.
struct HeldChunk {
  std::uint32_t tensor = 0, row_block = 0, col_block = 0;
  bool dirty = false;  // some of it is not in HBM yet
};

}  // namespace fuseline
