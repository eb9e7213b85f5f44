// Walks the kernels of a plan in launch order through one L2: what a kernel leaves there, the next
// one finds.
#pragma once

#include <optional>
#include <vector>

#include "model/plan.h"
#include "sim/block/phase_walk.h"
#include "sim/block/walk_watcher.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

struct WalkOptions {
  bool replay = false;
  bool rotating = false;  // in a replay: weights and caches of a layer of its own for each block
  int runs = 2;           // blocks walked; the last one counts
  int copies = 0;         // layers that take turns; 0: as many as runs
  std::optional<TensorId> watched{};
  bool by_tensor = true;      // also what kernels ask for of each tensor
  bool whole_layers = false;  // walks all of the layers before, also where L2 forgets most of them
  WalkMemo* memo = &WalkMemo::shared();  // none: every kernel is walked
  WalkWatcher* watcher = nullptr;        // of the block that counts; takes that there is no memo
};

// A split-K reduction and the merge of split attention follow their kernel as launches of their
// own.
std::vector<WalkedKernel> walk_block(const Plan& plan, const Gpu& gpu, const WalkOptions& options);

}  // namespace fuseline
