// What the simulator predicts: time and traffic per kernel and memory level, with the bound that
// set it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/plan.h"
#include "model/units.h"
#include "sim/gpu.h"

namespace fuseline {

enum class Fidelity : std::uint8_t { roofline, hierarchy };
enum class Bound : std::uint8_t { tensor, hbm, l2, smem, launch, sync };

// Bytes asked for by the kernel's loads and stores of one tensor, before any cache: tile loads
// included as often as tiles load them. The executor counts the same numbers.
struct RequestedBytes {
  TensorId tensor;
  Bytes loaded;
  Bytes stored;
  Bytes hbm_read{};  // of the loaded bytes, what L2 did not hold (hierarchy)
};

struct KernelEstimate {
  std::string name;
  KernelKind kind = KernelKind::pointwise;
  std::vector<std::string> operators;
  Seconds time;
  Flops flops;
  Bytes hbm_read;
  Bytes hbm_write;
  Bytes l2;          // bytes through L2 (tile loads with multicast counted once, plus stores)
  Bytes smem;        // bytes through shared memory
  Bytes compulsory;  // each distinct operand once
  Bound bound = Bound::hbm;
  std::vector<std::int64_t> tile;  // {tileM, tileN, tileK} or empty
  std::int64_t split_k = 1;
  std::vector<RequestedBytes> requested;
  // Parts of the time, for the picture: they overlap, so they do not add up.
  Seconds tensor_time, hbm_time, l2_time, smem_time, launch_time;
};

// Lower bounds no implementation of the block can pass: of the block as it is given, the same for
// every policy. sim/limits.h has the formulas.
struct Limits {
  Bytes compulsory;      // inputs, tables, weights and caches once; outputs once
  Bytes own;             // of them the block's own: weights, caches, gradients of weights
  Bytes least;           // that HBM moves in a row of equal blocks: L2 may keep what is not own
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
  Limits limits;
  double clock_factor = 1.0;  // sustained over boost clock, under load
  std::int64_t launches = 0;
};

struct SimulationOptions {
  bool replay =
      false;     // the same input and weights each time, as when one block is timed in a loop;
                 // otherwise every run is a new layer that reads what the last one wrote
  int runs = 2;  // blocks walked until the L2 is in its steady state; the last one counts
  double repeats = 24;  // blocks run back to back; the power limit acts as in the middle of them
};

// Predicts one block in its steady state. Milliseconds of work at hierarchy fidelity.
PlanEstimate simulate(const Plan& plan, const Gpu& gpu, Fidelity fidelity,
                      const SimulationOptions& options = {});

const char* name_of(Fidelity);
const char* name_of(Bound);

}  // namespace fuseline
