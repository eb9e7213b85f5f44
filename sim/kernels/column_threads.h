// How the threads of our own kernels that walk down columns share them (cuda/kernels/stream): what
// the emitter builds, and what the time of such a walk follows from.
#pragma once

#include <cstdint>

#include "model/program.h"

namespace fuseline {

struct ColumnThreads {
  std::int64_t block_rows = 0;  // that one thread block walks down
  std::int64_t inner_rows = 0;  // of partials within a longer walk; 0: none
  std::int64_t lanes = 4;       // threads beside each other, 8 columns each
  std::int64_t units = 1;       // rows that a thread takes in a step
  std::int64_t threads = 256;   // of a block
};
// Of a stream of `rows` x `cols` that sums_columns().
ColumnThreads column_threads(const Program& program, std::int64_t rows, std::int64_t cols);

// Whether the program is a stream that sums columns: all rows of them, those of each sequence, or
// every partial_tile rows as partials.
bool sums_columns(const Program& program);

// Numbers of each column that a thread carries down. At the end of a walk the threads of a block
// join them, one after the other.
struct ColumnSums {
  std::int64_t vectors = 0;   // one row of results that the program goes on with
  std::int64_t rows = 0;      // each a row of a matrix, stored at once
  std::int64_t partials = 0;  // of every partial_tile rows
  [[nodiscard]] std::int64_t all() const { return vectors + rows + partials; }
};
ColumnSums column_sums(const Program& program);

// Steps of a thread block, one after the other: each takes `units` rows in every thread.
std::int64_t column_steps(const ColumnThreads& threads);

// Thread blocks that the kernel has.
std::int64_t column_blocks(const ColumnThreads& threads, std::int64_t rows, std::int64_t cols);

// Neighbouring lanes that have `group` columns, 8 each; 0: they are no power of two, or more than a
// warp has.
int lanes_of_group(std::int64_t group);
// Lanes that hold the widest group whose columns are summed, and so all of them; 0: there is none.
int lanes_of_groups(const Program& program);

// Whether columns that belong together are no multiples of 8, so that elements move one by one.
bool has_odd_groups(const Program& program);

}  // namespace fuseline
