// Walks the kernels of a plan in launch order through one L2: what a kernel leaves there, the next
// one finds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/gemm_model.h"

namespace fuseline {

// One GEMM of a kernel, kept so that it can be timed again at another clock.
struct WalkedGemm {
  GemmProblem problem;
  GemmEstimate estimate;
};

// One launch, timed at the boost clock.
struct WalkedKernel {
  KernelEstimate estimate;
  Seconds fixed;    // the part that no clock changes: launch, memory, barriers
  Seconds compute;  // the part outside GEMMs that slows down with the SM clock
  std::vector<WalkedGemm> gemms;
  Bytes resident{};  // of the watched tensor, what L2 holds when the launch is over
};

struct WalkOptions {
  bool replay = false;
  int runs = 2;  // blocks walked; the last one counts
  std::optional<TensorId> watched{};
  bool whole_layers = false;  // walks all of the layers before, also where L2 forgets most of them
  WalkMemo* memo = &WalkMemo::shared();  // none: every kernel is walked
};

// A split-K reduction and the merge of split attention follow their kernel as launches of their
// own.
std::vector<WalkedKernel> walk_block(const Plan& plan, const Gpu& gpu, const WalkOptions& options);

// The kernel's time with every clock-bound part at this fraction of the boost clock.
Seconds time_at(const WalkedKernel& kernel, const Gpu& gpu, double clock_factor);

}  // namespace fuseline
