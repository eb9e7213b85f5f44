// The best plan of a block for an objective, how far it may be from the best there is, and which of
// its decisions mattered.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/sharing.h"
#include "sim/report/prediction.h"
#include "sim/search/constraints.h"
#include "sim/search/kernel_space.h"
#include "sim/search/objective.h"
#include "sim/verdict/verdict.h"

namespace fuseline {

struct SearchOptions {
  Objective objective = Objective::time;
  std::optional<Objective> front_with{};  // also a Pareto front of the two
  std::vector<std::string> policies{};    // to compare with, and to start from
  std::vector<Constraint> constraints{};
  Allowed allowed = Allowed::own_kernels;  // any: also what no kernel of ours does in this way
  double budget_seconds = 20;              // 0: until the search is complete
  bool decisions = true;
  const std::atomic<bool>* stop = nullptr;  // the best so far, as when the time is up
  // Threads and processes that share the work; null: the thread that calls. What is found and said
  // of it is the same where the search comes to its end.
  Sharing* sharing = nullptr;
  // The share of the budget, and what was found.
  std::function<void(const std::string& what, double done)> progress{};
  // Each plan that was tried; those that were the best when they came with the plan itself.
  std::function<void(const PlanValues& values, const Plan* best)> watch{};
};

// A policy's plan beside the one that was found.
struct PolicyComparison {
  std::string policy;
  PlanValues values{};
  std::int64_t launches = 0;
  std::optional<FusionGain> gain;  // of the found plan's time over the policy's; empty: no band
  // Why the search does not choose among such plans; empty: it does, with our own kernels.
  std::string outside;
};

// One decision of the plan, and the plan without it.
struct Decision {
  std::string kind;  // "on chip" or "rewrite"
  std::string what;  // "gu between gate_up and swiglu", "split_norm"
  FusionGain gain;   // of the time
  double value = 0;  // of the objective without it
};

struct FrontPlan {
  PlanValues values{};
  Plan plan;
};

struct SearchResult {
  Objective objective = Objective::time;
  std::optional<Objective> front_with{};
  Plan plan;
  PlanEstimate estimate;
  PlanValues values{};
  Band time_band{};
  double bound = 0;       // of the objective: no plan of the space is below
  bool complete = false;  // optimal in this space
  bool stopped = false;   // somebody stopped it
  Allowed allowed = Allowed::own_kernels;
  std::string policys_own{};  // the policy whose plan this is, with its own kernels
  std::size_t tried = 0, rewrites = 0, kernels = 0;
  double seconds = 0;
  std::vector<PolicyComparison> policies;
  std::vector<Decision> decisions;  // those that gain most first
  std::vector<FrontPlan> front;

  [[nodiscard]] double value() const { return values[static_cast<std::size_t>(objective)]; }
  // Of the bound: 0.05 is 5 % above it.
  [[nodiscard]] double gap() const { return bound > 0 ? value() / bound - 1 : 0; }
};

// Of the case's block, at fidelity hierarchy. InputError: an objective that is not modelled on the
// GPU, operators that the block does not have, constraints that leave no plan (which one).
SearchResult search_block(const PredictionCase& c, const SearchOptions& options);
// The same of a graph that somebody else built. `workload` says what bands are of.
SearchResult search_block(const Graph& block, const Gpu& gpu, const Workload& workload,
                          Launching launching, const SearchOptions& options);

}  // namespace fuseline
