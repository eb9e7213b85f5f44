// What one wave of a GEMM kernel moves.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "sim/memory/l2_cache.h"

namespace fuseline {

struct GemmWave {
  std::int64_t blocks = 0;   // thread blocks with work
  std::int64_t k_steps = 0;  // the longest unit's
  Bytes distinct;            // operand bytes, each once
  double found = 0;          // of the operand of which L2 had less: the share that it had
  Bytes missed;              // of the operands, scales apart: what L2 did not hold
  Bytes operands;            // operand bytes from L2, multicast counted once
  Bytes epilogue;            // bytes loaded and stored by epilogues (fp32 partials under split-K)
  Bytes block_epilogue;      // of them, the thread block's with the most
  Bytes block_sums;          // of those, sums of parts of a tile on their way to who adds up
  Bytes block_fetched;       // of those, what the mainloop's producer fetches for the epilogue
  // Of our own mainloop: rows that a thread block asks for and its matrix does not have, the most.
  std::int64_t absent_rows = 0;
  HbmTraffic hbm;
};

}  // namespace fuseline
