// How the simulator walks one block, kept step by step: which tiles run at the same time, what each
// step moves, and which chunks enter and leave L2 meanwhile. Tiles in motion are drawn from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/block/walk_watcher.h"
#include "sim/kernels/gemm_schedule.h"

namespace fuseline {

enum class ChunkState : std::uint8_t { absent, clean, dirty };

// A matrix in the L2's address space, in chunks of 64 × 64 elements. Tensors may share its memory
// one after the other.
struct RecordedMatrix {
  struct Name {
    std::size_t phase = 0;  // from this one on
    std::string tensor;
  };
  std::vector<Name> names;
  std::int64_t row_blocks = 0, col_blocks = 0;
  [[nodiscard]] const std::string& name_at(std::size_t phase) const;
};

struct ChunkChange {
  std::uint32_t matrix = 0, row_block = 0, col_block = 0;
  ChunkState before = ChunkState::absent, after = ChunkState::absent;
};

struct RecordedStep {
  WalkStep::Kind kind = WalkStep::Kind::rows;
  std::int64_t begin = 0, end = 0, of = 1;  // units, rows, heads
  Seconds start, time;                      // `start`: since the block began
  Seconds epilogue;                         // the last part of `time`, of a wave
  HbmTraffic hbm;
  Bytes evicted;
  Bytes resident;  // afterwards
  bool walked =
      true;  // false: a wave of a very large GEMM, which takes the mean of waves before it
  std::size_t first_change = 0, last_change = 0;  // half-open
};

// A program, in the order in which it runs.
struct RecordedPhase {
  std::string name;
  std::size_t kernel = 0;  // of the plan
  std::size_t launch = 0;
  KernelKind kind = KernelKind::pointwise;
  // Of a GEMM; `units` is empty for others.
  GemmTile tile;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t blocks_at_once = 0;  // thread blocks
  std::vector<GemmUnit> units;
  Seconds start;         // of a GEMM that begins a launch: until its first operands are on chip
  Bytes shared_bytes;    // of one thread block's pipeline stages
  Bytes register_bytes;  // of one thread block's sums
  std::vector<std::uint32_t> loaded, stored;  // matrices
  std::size_t first_step = 0, last_step = 0;  // half-open
};

struct RecordedLaunch {
  Seconds start, time;
  Seconds lead;  // the first part of `time`: the launch itself, before anything moves
  // Bytes that later layers write for it; no step has them.
  Bytes written_later;
  std::size_t first_phase = 0, last_phase = 0;  // half-open; none: a launch that moves nothing
};

struct WalkRecord {
  PlanEstimate estimate;  // what simulate() says of the same plan
  Bytes capacity;         // of the L2
  std::vector<RecordedMatrix> matrices;
  std::vector<ChunkChange> at_first;  // what the block finds in L2
  Bytes resident_at_first;
  std::vector<RecordedLaunch> launches;  // as the estimate's kernels
  std::vector<RecordedPhase> phases;
  std::vector<RecordedStep> steps;
  std::vector<ChunkChange> changes;

  [[nodiscard]] Seconds time() const {
    return launches.empty() ? Seconds() : launches.back().start + launches.back().time;
  }
};

// Walks the block once more, with all caches cold that remember walks: 20 to 200 ms. A GEMM's waves
// take what the simulator says; what it times as a whole is shared by bytes that the steps ask for.
// Steps of heads and rows that are more than some hundred are taken together. `between` is called
// after every step; what it throws ends the walk.
WalkRecord record_walk(const Plan& plan, const Gpu& gpu, const SimulationOptions& options = {},
                       const std::function<void()>& between = {});

}  // namespace fuseline
