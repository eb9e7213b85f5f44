#include "sim/verdict/sized_times.h"

#include "base/error.h"
#include "sim/gpu/plan_target.h"

namespace fuseline {

std::optional<SimulatedPlan> simulate_variant(const Variant& variant, const PredictionCase& c,
                                              const Workload& workload) {
  try {
    check_workload(workload, c.model);
    Plan plan = make_plan(variant.policy, c.model, workload, variant.custom, plan_target(c.gpu));
    PlanEstimate estimate = simulate(plan, c.gpu, Fidelity::hierarchy);
    return SimulatedPlan{std::move(plan), std::move(estimate)};
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool SizedTimes::know(const Wanted& wanted, const ParallelOptions& parallel) {
  Wanted fresh;
  for (const auto& [variant, workload] : wanted) {
    if (times_.try_emplace(key(variant, workload)).second) fresh.emplace_back(variant, workload);
  }
  std::vector<std::optional<Seconds>> times(fresh.size());
  const bool finished = parallel_for(
      fresh.size(), [&](std::size_t i) { times[i] = time(fresh[i].first, fresh[i].second); },
      parallel);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    times_[key(fresh[i].first, fresh[i].second)] = times[i];
  }
  return finished;
}

std::optional<double> SizedTimes::gain(std::size_t without, std::size_t with,
                                       const Workload& workload) {
  const auto one = known(without, workload), other = known(with, workload);
  if (!one || !other) return std::nullopt;
  return *one / *other;
}

std::optional<Seconds> SizedTimes::time(std::size_t variant, const Workload& workload) const {
  const auto plan = simulate_variant(variants_[variant], c_, workload);
  return plan ? std::optional(plan->estimate.time) : std::nullopt;
}

std::optional<Seconds> SizedTimes::known(std::size_t variant, const Workload& workload) {
  const auto [at, fresh] = times_.try_emplace(key(variant, workload));
  if (fresh) at->second = time(variant, workload);
  return at->second;
}

}  // namespace fuseline
