// The index space of a program's mainloop, and what the body may rely on there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program.h"

namespace fuseline {

struct IndexSpace {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t batch = 1;
  std::int64_t heads = 1;         // rows of the space in one row of an operand
  std::int64_t key_rows = 0;      // of attention's gradient: rows of dK and dV, B·S
  bool rows_resident = false;     // RowReduce, HeadSum
  bool columns_resident = false;  // ColumnReduce, tiles of narrower operands
  bool tiles_of_pairs = false;    // the kernel loads both columns of a pair itself
  bool interleaved = false;       // pairs are adjacent columns
};

// Adds to `problems` what is wrong with the mainloop and its operands, in words.
IndexSpace index_space_of(const Graph& graph, const Program& program,
                          std::vector<std::string>& problems);

// "operand a = x is [2, 3], not [2, 4]", or nothing.
std::string wrong_shape(const Graph& graph, const Operand& operand, std::int64_t rows,
                        std::int64_t cols, const std::string& what);

}  // namespace fuseline
