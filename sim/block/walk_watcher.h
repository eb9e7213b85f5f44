// Who is told how a block is walked: for records of it, from which pictures are made. What a
// watcher sees changes no prediction.
#pragma once

#include <cstddef>
#include <vector>

#include "model/plan.h"
#include "sim/block/phase_walk.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/program_streams.h"
#include "sim/memory/l2_watcher.h"

namespace fuseline {

// A program of a kernel, or what a framework launches beside it or in its place.
struct WatchedPhase {
  const Kernel* kernel = nullptr;
  const Program* program = nullptr;
  const FrameworkLaunch* launch = nullptr;
  std::size_t number = 0;  // of the launch among those of its kernel
};

// In this order: block_begins(); of every kernel its phases, each with its steps; kernel_ends().
class WalkWatcher : public L2Watcher {
 public:
  // The caches whose mean the L2 is; the first has the mean capacity.
  virtual void block_begins(const Plan& plan, const AddressMap& addresses,
                            const std::vector<const L2Cache*>& caches) = 0;
  virtual void phase_begins(const WatchedPhase& phase, const AddressMap& addresses) = 0;
  // What the phase costs at the boost clock, for a program without its launch.
  virtual void phase_ends(const WalkedKernel& walked, const Gpu& gpu) = 0;
  // So many launches of the estimate are this kernel's.
  virtual void kernel_ends(std::size_t launches) = 0;
};

}  // namespace fuseline
