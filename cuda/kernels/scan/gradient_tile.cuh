// The work of a scan's gradient (gradient.cuh), and where its operands lie in shared memory.
#pragma once

#include "mainloop.cuh"

namespace fuseline::gpu::stream {

struct ScanGradientSpace {
  ScanSpace scan;
  int batch;
  int piece;      // tokens between two kept states
  float* states;  // [thread blocks, segments of a piece, state numbers of a block]
  float* keys;    // [thread blocks, 2, tokens, N]: of dk, then of dq
  float* rates;   // [batch, heads, rates]
};

constexpr int segment_tokens = 16;

// Where things lie in shared memory, in floats.
template <class Kernel>
struct ScanGradientTile {
  static constexpr int tokens = segment_tokens;
  static constexpr int rows = Kernel::threads / Kernel::lanes;  // of threads
  static constexpr int warps = Kernel::threads / 32;
  static constexpr int heads = Kernel::heads;
  // Of a row: whole vectors move, and threads without a column have a place too.
  static constexpr int cols = ceil_div(rows * Kernel::columns, vector_cols) * vector_cols;
  static constexpr int numbers = Kernel::lanes * Kernel::numbers;
  static constexpr int key_cols = ceil_div(numbers, vector_cols) * vector_cols;
  static constexpr int x = 0;
  static constexpr int dy = x + tokens * cols;
  static constexpr int k = dy + tokens * cols;
  static constexpr int q = k + tokens * key_cols;
  static constexpr int of_x = q + tokens * key_cols;
  static constexpr int of_decay = of_x + tokens * cols;
  static constexpr int steps = of_decay + tokens * cols;  // pairs of a step and a decay
  static constexpr int parts = steps + 2 * tokens * heads;
  static constexpr int part_floats = Kernel::together * 2 * warps * numbers;
  // The sums of the rates take the same place.
  static constexpr int shared_floats = parts + max_of(part_floats, rows* numbers);
};

}  // namespace fuseline::gpu::stream
