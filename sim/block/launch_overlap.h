// Launches that overlap (programmatic dependent launch): a kernel begins once all thread blocks of
// the one before run or have ended, and asks for its first weights. It waits until that one has
// ended before it reads or writes anything else (cuda/kernels/launch_order.cuh).
#pragma once

#include <vector>

#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/kernel_estimate.h"

namespace fuseline {

// Whether the plan gains by it. All its kernels but library GEMMs are our own, the GPU can, and no
// product has more than 128 rows on average. On an H200 15 of 16 plans of decode gained, 3 % in the
// mean and 7 at most. Forward and in training tinyllama stayed as it was and GPT-2 XL gained
// 1.2 %, but LLaMA-2-7B and Qwen3-30B-A3B lost 0.6 and 5 %: thread blocks go to multiprocessors in
// the order in which these become free, so that those that share panels in L2 may be far from each
// other (docs/measuring.md).
bool launches_overlap(const Plan& plan, const Gpu& gpu);

// Takes launch.overlap_us off the time of each kernel of ours, at most half of it, if they do. It
// is the mean over all of a block: kernels in clusters begin in order and gain nothing, others
// more.
void overlap_launches(const Plan& plan, const Gpu& gpu, std::vector<KernelEstimate>& kernels);

}  // namespace fuseline
