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

// For k = 1, 2, ... `most`, the parting of the sizes 0 to `count` - 1 into at most k ranges whose
// cost is least; of equal ones that of the fewest ranges. Dynamic programming: the best k ranges
// up to a size are the best k - 1 up to an earlier one, and one more range. `cost`: of a range,
// at least 0.
std::vector<Parting> best_partings(std::size_t count, std::size_t most,
                                   const std::function<double(const ShapeRange&)>& cost);

}  // namespace fuseline
