// How a stream or row program is laid over threads: its mainloop of cuda/kernels/stream and that
// mainloop's constants.
#pragma once

#include <cstdint>
#include <map>

#include "model/program.h"

namespace fuseline::cuda {

// What the body makes, and how threads share it.
struct StreamValue {
  Form form = Form::tile;
  std::int64_t cols = 0;       // none of a number per row
  int each = 8;                // columns of a thread's unit: 4 where the space has pairs of them
  int level = 0;               // row reductions that must be done before
  bool after_columns = false;  // needs a column reduction
  const Primitive* made = nullptr;
};
using StreamValues = std::map<Value, StreamValue>;
StreamValues stream_values(const Program& program);

// Wider rows are walked along: 4 units of 8 columns in each of 512 threads are resident.
constexpr std::int64_t widest_row = 16384;

enum class StreamLoop : std::uint8_t { tiles, rows, columns_down };

struct StreamShape {
  StreamLoop loop = StreamLoop::tiles;
  std::int64_t rows = 0, cols = 0;     // of the space
  std::int64_t heads = 1, tokens = 0;  // rows
  int units = 1;
  std::int64_t distance = 0;  // tiles: of the pairs that a thread has both columns of
  int block_threads = 256;
  int row_threads = 32;         // rows: of one row
  int resident_blocks = 1;      // rows: at least, on a multiprocessor
  bool walked = false;          // rows: too wide to be resident
  int least_lanes = 1;          // tiles: of a warp beside each other
  int lanes = 4;                // columns_down: threads beside each other
  std::int64_t block_rows = 0;  // columns_down
  // columns_down: of partials within a longer walk; rows: of a thread block. 0: neither.
  std::int64_t inner_rows = 0;
  // Columns that belong together are no multiples of 8: elements move one by one.
  bool odd = false;
};

// Of a scan: the space of its body alone. InternalError: no mainloop offers the program's
// primitives together.
StreamShape stream_shape(const Graph& graph, const Program& program, const StreamValues& values);

// Whether the threads that hold a row of `cols` columns hold its groups in such lanes.
bool rows_hold_groups(std::int64_t heads, std::int64_t cols, std::int64_t group);

// Whether pairs of columns so far apart are in one thread; else each thread computes its columns'
// partners.
bool pairs_in_thread(const StreamShape& shape, std::int64_t distance);

}  // namespace fuseline::cuda
