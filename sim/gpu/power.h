// Energy of work, and the power limit: which SM clock a load sustains, and after how long the limit
// acts.
#pragma once

#include <functional>

#include "base/units.h"
#include "sim/gpu/gpu.h"

namespace fuseline {

// Energy of work at the boost clock, from the constants power.*. They were fitted so that sustained
// library GEMMs draw the H200's TDP at their measured rates.
struct PowerModel {
  Watts limit;                  // the board's TDP
  Watts constant;               // drawn by an active GPU that computes nothing
  Joules per_tensor_teraflop;   // 10^12 operations of the tensor cores on 16-bit operands
  Joules per_hbm_gigabyte;      // 10^9 bytes read or written
  Joules per_l2_gigabyte;       // 10^9 bytes between L2 and SMs
  Joules per_smem_gigabyte;     // 10^9 bytes into or out of shared memory
  double clock_exponent = 2.5;  // dynamic power ∝ (clock)^this: voltage falls with the clock
  double lowest_clock_factor = 0.4;
  Seconds reaction;                // the limit acts on power averaged over about this long
  double reaction_sharpness = 16;  // of the step from full speed to the steady clock
  double uncertainty = 0;          // of the energies of work: half of their 90 % band
};

PowerModel power_model(const Gpu& gpu);

Joules dynamic_energy(const PowerModel& model, Flops tensor, Bytes hbm, Bytes l2, Bytes smem);

// Time of a load at a clock over the boost clock.
using TimeAtClock = std::function<Seconds(double)>;

// Average power, at a clock `factor` times the boost clock, of a load that takes the energy
// `dynamic` at the boost clock. The energy falls as the clock to the power of clock_exponent - 1.
Watts power_at(const PowerModel& model, Joules dynamic, const TimeAtClock& time, double factor);

// Clock over boost clock, at most 1, of a load that goes on for ever: the highest clock at which it
// draws no more than the limit. Where there is none, it is the lowest clock.
double steady_clock_factor(const PowerModel& model, Joules dynamic, const TimeAtClock& time);

// Clock over boost clock at the time `elapsed` after a load began on a rested GPU. It is near 1
// well before the reaction time, and near `steady`, which the load sustains, well after it.
double clock_factor_after(const PowerModel& model, double steady, Seconds elapsed);

// The energy of a load at a clock `factor` times the boost clock, the idle power included, and the
// ends of its 90 % band. `low` and `high`: the ends of the band of the time, over the time.
struct Energy {
  Joules value, low, high;
};
Energy energy_of(const PowerModel& model, Joules dynamic, Seconds time, double factor,
                 double low = 1, double high = 1);

// How long a benchmark of one GEMM has run when its median launch begins: 20 replays of a graph
// that walks through about 5 GB of rotated operands. A block's benchmark: 10 × block time.
Seconds benchmark_elapsed(Bytes working_set, Seconds once);

}  // namespace fuseline
