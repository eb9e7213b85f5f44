// Which columns of a GEMM's result each primitive of an epilogue works on: Q, K and V are parts of
// one product, the keys of the rotated columns a part of a part.
#pragma once

#include <cstddef>
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
  std::vector<int> home;   // of each primitive of the body: index into parts, -1: the whole width
  std::int64_t whole = 0;  // the columns of a GEMM's result

  // Of a part, or with -1 of the whole width: its columns, and its first one among the result's.
  [[nodiscard]] std::int64_t cols(int part) const;
  [[nodiscard]] std::int64_t begin(int part) const;
};

// Loads have no home of their own (-1): they belong where their values are wanted.
EpilogueParts parts_of(const Program& program);

// The order in which the source of an epilogue has its steps: what works on all columns, then each
// part in a scope of its own. Calls visit(place in the body), and enter(part) and leave(part)
// around those of a part.
template <class Enter, class Visit, class Leave>
void in_order_of_source(const EpilogueParts& all, const Enter& enter, const Visit& visit,
                        const Leave& leave, int part = -1) {
  if (part >= 0) enter(part);
  for (std::size_t i = 0; i < all.home.size(); ++i)
    if (all.home[i] == part) visit(i);
  for (std::size_t i = 0; i < all.parts.size(); ++i)
    if (all.parts[i].parent == part)
      in_order_of_source(all, enter, visit, leave, static_cast<int>(i));
  if (part >= 0) leave(part);
}

// How many columns of a value of `cols` columns a thread has in a group, where the accumulator of a
// part of `part_cols` columns has 2.
int each_of(std::int64_t cols, std::int64_t part_cols);

}  // namespace fuseline
