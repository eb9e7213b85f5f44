#include "sim/gpu/power.h"

#include <algorithm>
#include <cmath>

namespace fuseline {

PowerModel power_model(const Gpu& gpu) {
  const PowerConstants& c = gpu.constants.power;
  constexpr double kJoulesPerGigabyte = 1e-3;  // of a picojoule a byte
  PowerModel model;
  model.limit = gpu.tdp;
  model.constant = Watts(c.idle_w);
  model.per_tensor_teraflop = Joules(c.tensor_pj_per_flop);
  model.per_hbm_gigabyte = Joules(c.hbm_pj_per_byte * kJoulesPerGigabyte);
  model.per_l2_gigabyte = Joules(c.l2_pj_per_byte * kJoulesPerGigabyte);
  model.per_smem_gigabyte = Joules(c.smem_pj_per_byte * kJoulesPerGigabyte);
  model.clock_exponent = c.clock_exponent;
  model.lowest_clock_factor = c.lowest_clock;
  model.reaction = c.reaction;
  model.reaction_sharpness = c.reaction_sharpness;
  model.uncertainty = c.energy_uncertainty;
  return model;
}

Joules dynamic_energy(const PowerModel& model, Flops tensor, Bytes hbm, Bytes l2, Bytes smem) {
  return model.per_tensor_teraflop * (tensor.as_double() * 1e-12) +
         model.per_hbm_gigabyte * (hbm.as_double() * 1e-9) +
         model.per_l2_gigabyte * (l2.as_double() * 1e-9) +
         model.per_smem_gigabyte * (smem.as_double() * 1e-9);
}

Watts power_at(const PowerModel& model, Joules dynamic, const TimeAtClock& time, double factor) {
  const Seconds taken = time(factor);
  if (taken <= Seconds()) return model.constant;
  return Watts(energy_of(model, dynamic, taken, factor).value.value() / taken.value());
}

double steady_clock_factor(const PowerModel& model, Joules dynamic, const TimeAtClock& time) {
  const auto above = [&](double factor) {
    return (power_at(model, dynamic, time, factor) - model.limit).value();
  };
  double high = 1, over = above(high);
  if (over <= 0) return 1;
  double low = model.lowest_clock_factor, under = above(low);
  if (under >= 0) return low;
  // False position with halving (Illinois): power rises smoothly with the clock.
  constexpr int kMostSteps = 60;
  constexpr double kWatt = 1e-6;  // two GPUs that differ a little must not be ordered by rounding
  for (int step = 0, side = 0; step < kMostSteps; ++step) {
    const double middle = (low * over - high * under) / (over - under);
    const double there = above(middle);
    if (std::abs(there) < kWatt) return middle;
    if (there > 0) {
      high = middle, over = there;
      if (side == 1) under /= 2;
      side = 1;
    } else {
      low = middle, under = there;
      if (side == -1) over /= 2;
      side = -1;
    }
  }
  return low;
}

double clock_factor_after(const PowerModel& model, double steady, Seconds elapsed) {
  // A sharp but smooth step, half done after the reaction time.
  const double ratio = std::max(0.0, elapsed / model.reaction);
  const double acting = 1.0 - std::exp(-std::pow(ratio, model.reaction_sharpness) * std::log(2.0));
  return 1.0 + (steady - 1.0) * acting;
}

Energy energy_of(const PowerModel& model, Joules dynamic, Seconds time, double factor, double low,
                 double high) {
  const Joules idle = model.constant * time;
  const Joules work = dynamic * std::pow(factor, model.clock_exponent - 1);
  return {idle + work, idle * low + work * std::max(0.0, 1 - model.uncertainty),
          idle * high + work * (1 + model.uncertainty)};
}

Seconds benchmark_elapsed(Bytes working_set, Seconds once) {
  constexpr double kRotatedBytes = 5e9;
  constexpr double kReplaysToMedian = 10;
  const double launches = std::max(1.0, std::ceil(kRotatedBytes / working_set.as_double()));
  return once * (launches * kReplaysToMedian);
}

}  // namespace fuseline
