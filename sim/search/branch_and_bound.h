// Looks at the plans of a space from the least bound upwards, until none is left that could be
// better than the best one.
#pragma once

#include <cstddef>
#include <functional>

#include "sim/search/evaluator.h"
#include "sim/search/least_cost.h"

namespace fuseline {

struct SpaceBound {
  double value = 0;         // no plan of the space is below it
  std::size_t kernels = 0;  // of all rewritten blocks that were looked into
  bool complete = false;    // nothing is left: the best plan is the best of the space
};

// A plan's bound is the sum of what its kernels cost at least. A rewritten block that was not
// looked into is bounded by the block's own limits. `progress` gets the bound so far.
SpaceBound bound_space(Evaluator& evaluator, LeastCosts& costs,
                       const std::function<void(double)>& progress);

}  // namespace fuseline
