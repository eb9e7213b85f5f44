// What a kernel costs at least, whatever the rest of the plan is.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "sim/block/phase_walk.h"
#include "sim/gpu/gpu.h"
#include "sim/search/kernel_space.h"

namespace fuseline {

// The kernel in the best case: an L2 that forgets nothing holds all that any other kernel of the
// block may have left there, and what every layer has of its own comes out of HBM. No plan finds
// more in L2, and in the simulator's formulas less traffic takes no more time.
struct LeastCost {
  std::vector<WalkedKernel> launches;
  Bytes hbm;
  Joules energy;  // of the work at the boost clock
  std::int64_t count = 0;

  [[nodiscard]] Seconds time(const Gpu& gpu, double clock_factor) const;
  // As phases of a launch that other kernels share, or as launches: what is less.
  [[nodiscard]] Seconds time_in_one_launch(const Gpu& gpu, double clock_factor) const;
};

// Costs of kernels by what they do, so that equal kernels of several rewritten blocks are walked
// once.
class LeastCosts {
 public:
  // `gpu` must outlive it.
  explicit LeastCosts(const Gpu& gpu);

  // From several threads at once.
  const LeastCost& of(const KernelSpace& space, const UnitSet& kernel);

 private:
  const Gpu* gpu_;
  Gpu generous_;  // the same with an L2 that holds everything
  std::mutex mutex_;
  std::map<std::string, LeastCost> known_;
};

// The highest clock, as a part of the boost clock, of any plan that takes less than `time`, where
// every plan takes at least `fastest` at the boost clock and `energy` for its work there.
double highest_clock(const Gpu& gpu, Seconds time, Seconds fastest, Joules energy, double repeats);

}  // namespace fuseline
