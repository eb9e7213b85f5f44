// Times of several plans of one block at several sizes, each simulated once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/parallel_for.h"
#include "model/custom_fusion.h"
#include "sim/report/prediction.h"
#include "sim/verdict/limit.h"

namespace fuseline {

// A policy, or the choices of policy `custom`.
struct Variant {
  std::string policy;
  CustomFusion custom{};
};

// Empty where the workload is too large, or the variant's choices are refused at this size.
std::optional<SimulatedPlan> simulate_variant(const Variant& variant, const PredictionCase& c,
                                              const Workload& workload);

class SizedTimes {
 public:
  // Both must outlive it.
  SizedTimes(const PredictionCase& c, const std::vector<Variant>& variants)
      : c_(c), variants_(variants) {}

  using Wanted = std::vector<std::pair<std::size_t, Workload>>;  // a variant's place, and its size
  // Simulates those that are not known yet, in parallel. False when it was stopped.
  bool know(const Wanted& wanted, const ParallelOptions& parallel);

  // Time of one variant over that of the other; empty where one of them has no plan.
  std::optional<double> gain(std::size_t without, std::size_t with, const Workload& workload);

 private:
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, std::int64_t>;
  static Key key(std::size_t variant, const Workload& w) {
    return {variant, w.batch, w.seq, w.context};
  }
  [[nodiscard]] std::optional<Seconds> time(std::size_t variant, const Workload& workload) const;
  std::optional<Seconds> known(std::size_t variant, const Workload& workload);

  const PredictionCase& c_;
  const std::vector<Variant>& variants_;
  std::map<Key, std::optional<Seconds>> times_;
};

}  // namespace fuseline
