#include "sim/gpu/power.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fuseline {
namespace {

double constant_of(const Gpu& gpu, const char* name, double fallback) {
  return own_constant(gpu, power_constant_ranges(), name, fallback);
}

}  // namespace

PowerModel power_model(const Gpu& gpu) {
  // Shares of the TDP: what an active GPU draws without work, and the tensor cores at their
  // datasheet rate, HBM and L2 at their bandwidths. Fitted on one H200 (fuseline measurements,
  // 2026-11-20): 119 W at rest, a large GEMM 1.13 to 1.17 times slower after 50 ms than before,
  // blocks 1.01 to 1.13 times.
  // The tensor fractions of Ampere and Ada (sim/gpu/gemm_constants.cpp) were fitted under load and
  // already hold most of the throttling.
  const Architecture kernels = kernel_architecture(gpu);
  const bool fitted_under_load = kernels == Architecture::ampere || kernels == Architecture::ada;
  const double tensor_share = fitted_under_load ? 0.6 : 1.085;
  const double tdp = gpu.tdp.value();
  PowerModel model;
  model.limit = gpu.tdp;
  model.constant = Watts(tdp * constant_of(gpu, "power.constant_share", 0.17));
  model.per_tensor_teraflop = Joules(tdp * constant_of(gpu, "power.tensor_share", tensor_share) /
                                     (gpu.tensor_bf16.value() * 1e-12));
  model.per_hbm_gigabyte =
      Joules(tdp * constant_of(gpu, "power.hbm_share", 0.41) / (gpu.hbm_bandwidth.value() * 1e-9));
  model.per_l2_gigabyte =
      Joules(tdp * constant_of(gpu, "power.l2_share", 0.11) / (gpu.l2_bandwidth.value() * 1e-9));
  model.clock_exponent = constant_of(gpu, "power.clock_exponent", 1.75);
  model.reaction = microseconds(1000 * constant_of(gpu, "power.reaction_ms", 53));
  return model;
}

// Something must be left for work beside the constant share.
std::vector<ConstantRange> power_constant_ranges() {
  return {{"power.constant_share", 0, 0.9},  {"power.tensor_share", 0.01, 10},
          {"power.hbm_share", 0, 10},        {"power.l2_share", 0, 10},
          {"power.clock_exponent", 0.5, 10}, {"power.reaction_ms", 0.01, 1e5}};
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
  // A sharp but smooth step: medians measured 48 ms after the start are at full speed, after 56 ms
  // throttled.
  const double ratio = std::max(0.0, elapsed / model.reaction);
  const double acting = 1.0 - std::exp(-std::pow(ratio, 16.0) * std::log(2.0));
  return 1.0 + (steady - 1.0) * acting;
}

Seconds benchmark_elapsed(Bytes working_set, Seconds once) {
  constexpr double kRotatedBytes = 5e9;
  constexpr double kReplaysToMedian = 10;
  const double launches = std::max(1.0, std::ceil(kRotatedBytes / working_set.as_double()));
  return once * (launches * kReplaysToMedian);
}

}  // namespace fuseline
