// What a plan gains by each of its decisions.
#pragma once

#include <vector>

#include "sim/search/search.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

// Times of the kernels that only one of two plans has: other operators, or another tile.
struct DifferentKernels {
  Seconds before, after;
};
DifferentKernels different_kernels(const PlanEstimate& before, const PlanEstimate& after);

// Undoes every edge that the plan keeps on chip, and every rewrite of it, one at a time. Where an
// edge is undone, the kernel falls apart there and all else stays. Where a rewrite is undone,
// operators of the same names stay together, and steps that gain are made from there. Sorted by
// gain.
std::vector<Decision> decisions_of(Evaluator& evaluator, const Candidate& best,
                                   const PlanEstimate& estimate, const Sureness& sure);

}  // namespace fuseline
