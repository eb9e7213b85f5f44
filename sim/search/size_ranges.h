// Sizes in order, parted into ranges of neighbours.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace fuseline {

// The sizes from `first` to `last`, both of them included.
struct ShapeRange {
  std::size_t first = 0, last = 0;

  friend bool operator==(const ShapeRange&, const ShapeRange&) = default;
};

struct Parting {
  double cost = 0;  // the sum of its ranges' costs
  std::vector<ShapeRange> ranges;
};

// For each k = 1, 2, ... `most`: the cheapest way to divide the sizes 0 to `count` - 1 into at most
// k ranges, and of equally cheap ways the one with the fewest ranges. Dynamic programming: the best
// k ranges up to a size are the best k - 1 ranges up to an earlier size, and one more range. `cost`
// gives the cost of a range, at least 0.
std::vector<Parting> best_partings(std::size_t count, std::size_t most,
                                   const std::function<double(const ShapeRange&)>& cost);

}  // namespace fuseline
