// The power limit: which SM clock a load sustains, and after how long the limit acts.
#pragma once

#include "base/units.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Energy of work at the boost clock. Per-unit energies are fitted so that sustained library GEMMs
// draw the TDP at their measured rates; GPUs that were not measured take the H200's shares of TDP.
struct PowerModel {
  Watts limit;                  // the board's TDP
  Watts constant;               // drawn by an active GPU that computes nothing
  Joules per_tensor_teraflop;   // 10^12 floating-point operations of the tensor cores
  Joules per_hbm_gigabyte;      // 10^9 bytes read or written
  Joules per_l2_gigabyte;       // 10^9 bytes between L2 and SMs
  double clock_exponent = 2.5;  // dynamic power ∝ (clock)^this: voltage falls with the clock
  double lowest_clock_factor = 0.4;
  Seconds reaction;                // the limit acts on power averaged over about this long
  double reaction_sharpness = 16;  // of the step from full speed to the steady clock
};

PowerModel power_model(const Gpu& gpu);

// Work done at the boost clock within `time`, for one kernel or summed over a block.
struct PowerLoad {
  Joules dynamic;
  Seconds time;
  PowerLoad& operator+=(const PowerLoad& other) {
    dynamic += other.dynamic;
    time += other.time;
    return *this;
  }
};

Joules dynamic_energy(const PowerModel& model, Flops tensor, Bytes hbm, Bytes l2);

// Average power of the load at the boost clock.
Watts unlimited_power(const PowerModel& model, const PowerLoad& load);

// Clock over boost clock, 1 or less, of a load that goes on for ever: constant + dynamic ×
// c^exponent = limit.
double steady_clock_factor(const PowerModel& model, const PowerLoad& load);

// The same `elapsed` after the load began on a rested GPU: near 1 well before the reaction time,
// the steady factor well after it.
double clock_factor_after(const PowerModel& model, const PowerLoad& load, Seconds elapsed);

// How long a benchmark of one GEMM has run when its median launch begins: 20 replays of a graph
// that walks through about 5 GB of rotated operands. A block's benchmark: 10 × block time.
Seconds benchmark_elapsed(Bytes working_set, Seconds once);

}  // namespace fuseline
