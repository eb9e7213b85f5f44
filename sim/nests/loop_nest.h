// A kernel as loops over whole numbers: which iterations there are, and which elements each
// touches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuseline {

struct Loop {
  std::string name;
  std::int64_t size = 0;
};

// The elements of an array that one iteration touches, as isl writes a relation: "m, k", or "m, j :
// 0 <= j < N" for a whole row. A size is the capital letter of its loop.
struct NestAccess {
  std::string array;
  std::string elements;
  bool write = false;
};

// What runs once for every combination of its loops. `sums`: what it writes is added to, and the
// terms may come in any order.
struct NestStatement {
  std::string name;
  std::vector<std::string> loops;
  std::vector<NestAccess> accesses;
  bool sums = false;
};

// Statements run one after the other, each over all its loops.
struct LoopNest {
  std::string name;
  std::vector<Loop> loops;
  std::vector<NestStatement> statements;
};

// Edges of tiles by loop; 0 or the loop's size: the loop is not cut. `order`: the loops over tiles
// from the outermost one inwards. Loops that are not named are innermost, in the nest's order.
struct TileOrder {
  struct Cut {
    std::string loop;
    std::int64_t edge = 0;
  };
  std::vector<Cut> order;
};

// "m by 128, n by 256, k whole"
std::string describe(const TileOrder& tiles);

}  // namespace fuseline
