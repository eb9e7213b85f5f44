// From a profiler's list of kernels to the trace of one block: which of them are one replay, and
// which step of the plan each belongs to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/measured/nsight_csv.h"

namespace fuseline {

// Length of the shortest list whose repetition gives exactly these kernels (names and launch
// shapes); their number when they do not repeat.
std::size_t repetition_length(std::span<const NsightKernel> kernels);

struct SiteAssignment {
  std::size_t named = 0;      // kernels that have a site now
  bool same_kernels = false;  // number and kinds are the plan's
};

// Gives kernels without a site that of the plan's kernel they stand for. Kernels that a library
// adds to a GEMM or to attention (split-K's sum, the merge of split attention) count as part of it.
// Where number and kinds are the plan's, all; else only those whose partner is the same however the
// two lists are aligned. A kernel of several steps gets no site.
SiteAssignment assign_sites(std::vector<MeasuredKernel>& kernels, const Plan& plan);

}  // namespace fuseline
