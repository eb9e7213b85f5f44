#include "sim/search/objective.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sim/block/limits.h"
#include "sim/gpu/power.h"
#include "sim/memory/activations.h"

namespace fuseline {

namespace {

// Energy at the clock where the kernel takes least: between two clocks the work is that of the
// lower one at least, and the idle GPU's part that of the higher one.
double least_energy(const LeastCost& cost, const Gpu& gpu, double highest_clock, bool one_launch) {
  const PowerModel power = power_model(gpu);
  constexpr int kSteps = 24;
  double least = std::numeric_limits<double>::infinity();
  const double width = (highest_clock - power.lowest_clock_factor) / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const double low = power.lowest_clock_factor + i * width;
    const Joules work = cost.energy * std::pow(low, power.clock_exponent - 1);
    const double high = std::min(1.0, low + width);
    const Joules idle =
        power.constant * (one_launch ? cost.time_in_one_launch(gpu, high) : cost.time(gpu, high));
    least = std::min(least, (work + idle).value());
  }
  return least;
}

}  // namespace

const std::vector<std::string>& objective_words() {
  static const std::vector<std::string> words = {"time", "hbm", "launches", "memory", "energy"};
  return words;
}

const char* name_of(Objective objective) {
  return objective_words()[static_cast<std::size_t>(objective)].c_str();
}

const char* unit_of(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "µs";
    case Objective::hbm:
    case Objective::memory:
      return "MB";
    case Objective::launches:
      return "launches";
    case Objective::energy:
      return "mJ";
  }
  FUSELINE_ASSERT(false, "objective");
}

double shown(Objective objective, double value) {
  switch (objective) {
    case Objective::time:
      return value * 1e6;
    case Objective::hbm:
    case Objective::memory:
      return value * 1e-6;
    case Objective::launches:
      return value;
    case Objective::energy:
      return value * 1e3;
  }
  FUSELINE_ASSERT(false, "objective");
}

std::string why_not_modelled(Objective objective, const Gpu& gpu) {
  if (objective != Objective::energy) return "";
  const PowerModel power = power_model(gpu);
  if (power.per_tensor_teraflop.value() > 0 && power.per_hbm_gigabyte.value() > 0) return "";
  return "the architecture of " + gpu.name + " has no energies of work (constants power.*)";
}

double value_of(Objective objective, const Plan& plan, const PlanEstimate& estimate,
                const Gpu& gpu) {
  switch (objective) {
    case Objective::time:
      return estimate.time.value();
    case Objective::hbm:
      return (estimate.hbm_read + estimate.hbm_write).as_double();
    case Objective::launches:
      return static_cast<double>(estimate.launches);
    case Objective::memory:
      return activations_of(plan).peak.as_double();
    case Objective::energy:
      return energy_of(power_model(gpu), estimate.dynamic_energy, estimate.time, 1.0).value.value();
  }
  FUSELINE_ASSERT(false, "objective");
}

double least_of(Objective objective, const LeastCost& cost, const Gpu& gpu, double highest_clock,
                bool one_launch) {
  switch (objective) {
    case Objective::time:
      return (one_launch ? cost.time_in_one_launch(gpu, highest_clock)
                         : cost.time(gpu, highest_clock))
          .value();
    case Objective::hbm:
      return cost.hbm.as_double();
    case Objective::launches:
      return one_launch ? 0 : static_cast<double>(cost.count);
    case Objective::memory:
      return 0;
    case Objective::energy:
      return least_energy(cost, gpu, highest_clock, one_launch);
  }
  FUSELINE_ASSERT(false, "objective");
}

double limit_of(Objective objective, const Graph& block, const Gpu& gpu) {
  const Limits limits = limits_of(block, gpu);
  switch (objective) {
    case Objective::time:
      return limits.time.value();
    case Objective::hbm:
      return limits.capacity_bound.as_double();
    case Objective::launches:
      return 1;
    case Objective::memory: {
      // At the first kernel all inputs that it does not make itself are there.
      Bytes in;
      for (const Tensor& t : block.tensors()) {
        if (t.role == Role::input) in += t.bytes();
      }
      return in.as_double();
    }
    case Objective::energy:
      return (power_model(gpu).constant * limits.time).value();
  }
  FUSELINE_ASSERT(false, "objective");
}

}  // namespace fuseline
