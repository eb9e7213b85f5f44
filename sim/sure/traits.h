// What is known of an estimate before anything is measured, and says how far such estimates err.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/block/estimate.h"
#include "sim/sure/band.h"

namespace fuseline {

// A kernel of a plan, as far as another plan's kernels are compared with it.
struct KernelOutline {
  std::string key;  // kind, operators, tile and choice: kernels with one key are one kernel
  double seconds = 0;
  std::int64_t launches = 1;
  bool other = false;  // neither a product nor attention
};
std::vector<KernelOutline> outlines_of(const PlanEstimate& estimate);

// The traits' names of a subject, in the order in which WorkClass::traits has them. Subjects
// without traits have bands of one width in a class.
//   time  limits   ln of the time at the block's limits over the estimate
//         own      1: our own kernels
//         special  1: scores through memory, experts or scans
//         others   share of the kernels' time outside products and attention
//   gain  launch   ln of the mean seconds of a launch, of the slower plan
//         differing  ln of 0.02 + the share of both plans' time in kernels other than products and
//                  attention that only one of the plans has
//         mixed    1: a plan of our own kernels over one of a library's
const std::vector<std::string>& trait_names(const std::string& what);

// Empty where an estimate has no limits, as one that was saved without them.
std::vector<double> time_traits(const PlanEstimate& estimate, const WorkClass& work);
// Empty where a plan has no kernels. `slow` and `fast` as predicted.
std::vector<double> gain_traits(const WorkClass& work, const std::vector<KernelOutline>& slow,
                                const std::vector<KernelOutline>& fast);

}  // namespace fuseline
