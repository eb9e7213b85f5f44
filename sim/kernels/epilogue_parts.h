// Which columns of a GEMM's result each primitive of an epilogue works on: Q, K and V are parts of
// one product, the keys of the rotated columns a part of a part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/program.h"

namespace fuseline {

// Columns [begin, begin + cols) of another part, or with parent = -1 of the whole width.
struct Part {
  int parent = -1;
  std::int64_t begin = 0, cols = 0;
  std::string name;  // of the variable that places it
};

struct EpilogueParts {
  std::vector<Part> parts;
  std::vector<int> home;  // of each primitive of the body: index into parts, -1: the whole width
};

// Loads have no home of their own (-1): they belong where their values are wanted.
EpilogueParts parts_of(const Program& program);

}  // namespace fuseline
