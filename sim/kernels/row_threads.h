// How the threads of our own row kernels share a row (cuda/kernels/stream): what the emitter builds
// and what the time of a walk down rows follows from.
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline {

inline constexpr std::int64_t kThreadsOfWarp = 32;
// Columns that a thread of our own streams moves at once.
inline constexpr std::int64_t kUnitCols = 8;

// Tiles that the program loads; a window along rows counts as many times as it has rows.
std::int64_t loaded_tiles(const Program& program);

struct RowThreads {
  std::int64_t threads = 32;  // of one row
  std::int64_t units = 1;     // of 8 columns each, in a thread
};
// Of rows that are resident in their threads. `column_partials`: a thread block has one row after
// the other and sums their columns, so at least a warp has each.
RowThreads row_threads(const Program& program, std::int64_t rows, std::int64_t cols,
                       bool column_partials);

// Whether the program reduces whole rows and leaves sums of columns for every partial_tile rows:
// then one thread block walks down these rows, each of which waits for its own sums.
bool walks_down_rows(const Program& program);

// Dependent steps of a row: loads that wait for nothing, and for every level of sums over the row
// these sums and the loads that stand behind them.
std::int64_t row_steps_of(const Program& program);

}  // namespace fuseline
