#include "sim/gpu/power.h"

#include <algorithm>
#include <cmath>

namespace fuseline {

PowerModel power_model(const Gpu& gpu) {
  const PowerConstants& c = gpu.constants.power;
  const double tdp = gpu.tdp.value();
  PowerModel model;
  model.limit = gpu.tdp;
  model.constant = Watts(tdp * c.constant_share);
  model.per_tensor_teraflop = Joules(tdp * c.tensor_share / (gpu.tensor_bf16.value() * 1e-12));
  model.per_hbm_gigabyte = Joules(tdp * c.hbm_share / (gpu.hbm_bandwidth.value() * 1e-9));
  model.per_l2_gigabyte = Joules(tdp * c.l2_share / (gpu.l2_bandwidth.value() * 1e-9));
  model.clock_exponent = c.clock_exponent;
  model.lowest_clock_factor = c.lowest_clock;
  model.reaction = c.reaction;
  model.reaction_sharpness = c.reaction_sharpness;
  return model;
}

Joules dynamic_energy(const PowerModel& model, Flops tensor, Bytes hbm, Bytes l2) {
  return model.per_tensor_teraflop * (tensor.as_double() * 1e-12) +
         model.per_hbm_gigabyte * (hbm.as_double() * 1e-9) +
         model.per_l2_gigabyte * (l2.as_double() * 1e-9);
}

Watts unlimited_power(const PowerModel& model, const PowerLoad& load) {
  if (load.time <= Seconds()) return model.constant;
  return model.constant + Watts(load.dynamic.value() / load.time.value());
}

double steady_clock_factor(const PowerModel& model, const PowerLoad& load) {
  const Watts dynamic = unlimited_power(model, load) - model.constant;
  const Watts budget = model.limit - model.constant;
  if (dynamic <= budget) return 1.0;
  const double factor = std::pow(budget / dynamic, 1.0 / model.clock_exponent);
  return std::max(model.lowest_clock_factor, factor);
}

double clock_factor_after(const PowerModel& model, const PowerLoad& load, Seconds elapsed) {
  const double steady = steady_clock_factor(model, load);
  // A sharp but smooth step, half done after the reaction time.
  const double ratio = std::max(0.0, elapsed / model.reaction);
  const double acting = 1.0 - std::exp(-std::pow(ratio, model.reaction_sharpness) * std::log(2.0));
  return 1.0 + (steady - 1.0) * acting;
}

Seconds benchmark_elapsed(Bytes working_set, Seconds once) {
  constexpr double kRotatedBytes = 5e9;
  constexpr double kReplaysToMedian = 10;
  const double launches = std::max(1.0, std::ceil(kRotatedBytes / working_set.as_double()));
  return once * (launches * kReplaysToMedian);
}

}  // namespace fuseline
