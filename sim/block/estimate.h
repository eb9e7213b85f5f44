// What the simulator predicts of a plan: its kernels' estimates, their sum, and the block's limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/plan.h"
#include "sim/gpu/gpu.h"
#include "sim/kernels/kernel_estimate.h"

namespace fuseline {

enum class Fidelity : std::uint8_t { roofline, hierarchy };

// How kernels are started: by one replay of a CUDA graph; the same with launches that overlap,
// where the plan gains by it (launch_overlap.h); or one by one by a framework's CPU.
enum class Launching : std::uint8_t { graph, overlap, stream };

// Lower bounds that no implementation of the block can pass. They belong to the block before any
// rewrite, so they are the same for every policy. sim/block/limits.h has the formulas.
struct Limits {
  Bytes compulsory;  // inputs, tables, weights and caches once; outputs once
  Bytes own;    // the part of them that no other block shares: weights, their gradients, caches
  Bytes least;  // what HBM moves at least in a row of equal blocks; L2 may keep the rest
  Bytes capacity_bound;  // best traffic for the on-chip capacity, at least `least`
  Seconds time;          // for the FLOPs at the boost clock, or for `least`
};

struct PlanEstimate {
  std::string policy;
  Fidelity fidelity = Fidelity::hierarchy;
  std::vector<KernelEstimate>
      kernels;  // a split-K reduction or attention combine is a kernel of its own
  Seconds time;
  Flops flops;
  Bytes hbm_read, hbm_write, l2;
  Seconds launch_wait;    // the part of `time` in which the GPU waits for the CPU; 0 with graphs
  Joules dynamic_energy;  // of the kernels, without what an idle GPU draws
  Limits limits;
  double clock_factor = 1.0;  // sustained over boost clock, under load
  std::int64_t launches = 0;
  bool in_groups = false;  // some products have groups of rows, one for each expert
};

class WalkWatcher;

struct SimulationOptions {
  bool replay =
      false;  // the same input and weights each time, as when one block is timed in a loop;
              // otherwise every run is a new layer that reads what the last one wrote
  // In a replay: every block has weights and caches of its own, as where one block is timed by
  // layers that take turns, because its weights alone would stay in L2.
  bool rotating = false;
  int runs = 2;    // blocks walked until the L2 is in its steady state; the last one counts
  int copies = 0;  // of a layer's weights and caches, which take turns; 0: each block has its own
  bool remember = true;  // kernels that the process walked before are not walked again
  double repeats = 24;   // blocks in a row; the power limit acts as it does halfway through them
  Launching launching = Launching::graph;
  // Also what each kernel asks for of each tensor: a tenth of the work, which sums need not.
  bool by_tensor = true;
  // Is told how the last block is walked. Then `remember` has no effect. It changes no number.
  WalkWatcher* watcher = nullptr;
};

// Predicts one block in its steady state. Milliseconds of work at hierarchy fidelity.
PlanEstimate simulate(const Plan& plan, const Gpu& gpu, Fidelity fidelity,
                      const SimulationOptions& options = {});

const char* name_of(Fidelity);
const char* name_of(Launching);
std::vector<std::string> launching_names();

}  // namespace fuseline
