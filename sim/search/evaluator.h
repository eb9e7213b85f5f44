// Plans that a search tries: each is simulated once, and the best is kept.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/sharing.h"
#include "sim/block/estimate.h"
#include "sim/search/kernel_space.h"
#include "sim/search/objective.h"

namespace fuseline {

// One plan of the space: a rewritten block by its number, and its kernels.
struct Candidate {
  std::size_t block = 0;
  Grouping grouping;
};

struct EvaluatorOptions {
  Objective objective = Objective::time;
  Launching launching = Launching::graph;
  Allowed allowed = Allowed::own_kernels;   // any: they may be phases of one launch too
  double budget_seconds = 0;                // 0: as long as it takes
  const std::atomic<bool>* stop = nullptr;  // set: as if the time were up
  // Each plan when it was tried, and whether it is the best so far.
  std::function<void(const Candidate&, const PlanValues&, bool best)> watch{};
  Sharing* sharing = nullptr;  // who tries plans; null: the thread that calls
};

// What came of one plan.
struct TriedPlan {
  std::optional<PlanValues> values;  // empty: no order of kernels, or too large to be simulated
  bool one_launch = false;
  std::size_t simulations = 0;
};

class Trials;  // sim/search/trials.h

class Evaluator {
 public:
  // `block`: as it is given, and `gpu`: both must outlive it.
  Evaluator(const Graph& block, const Gpu& gpu, const EvaluatorOptions& options);

  // Adds a rewritten block to the space, and gives its number.
  std::size_t add(RewrittenBlock block, const std::vector<Constraint>& constraints);
  [[nodiscard]] std::size_t blocks() const { return spaces_.size(); }
  // A space may grow wiser where it is asked, so one piece of work has it at a time.
  [[nodiscard]] KernelSpace& space(std::size_t block) const { return *spaces_[block].space; }
  [[nodiscard]] const Gpu& gpu() const { return gpu_; }
  [[nodiscard]] const Graph& block() const { return block_; }
  [[nodiscard]] const EvaluatorOptions& options() const { return options_; }

  // Empty where the kernels cannot be ordered, or the plan is too large to be simulated.
  std::optional<PlanValues> values(const Candidate& candidate);
  // The plan with its reasons, as one launch where that was tried and is better; and what it is
  // predicted to do.
  [[nodiscard]] Plan plan(const Candidate& candidate, bool reasons = true);
  [[nodiscard]] PlanEstimate estimate(const Plan& plan) const;

  // Of those tried so far by the objective; of equal ones the faster.
  [[nodiscard]] const std::optional<Candidate>& best() const { return best_; }
  [[nodiscard]] const PlanValues& best_values() const { return best_values_; }
  [[nodiscard]] double best_value() const;
  // Those tried that no other one tried beats in both, by the first.
  struct Tried {
    Candidate candidate;
    PlanValues values;
  };
  [[nodiscard]] std::vector<Tried> front(Objective one, Objective other) const;

  [[nodiscard]] std::size_t tried() const { return tried_; }
  [[nodiscard]] double seconds() const;
  // Time is up, or it was stopped. Who shares the work sees that only after a piece of it was
  // shared, so that all see the same.
  [[nodiscard]] bool over() const { return options_.sharing != nullptr ? over_ : late(); }
  // The same by this process's own clock: for pieces of work.
  [[nodiscard]] bool late() const;

  // work(0) ... work(count - 1) on all that share the work, as Sharing::texts. A piece may read
  // this evaluator, and tries plans in Trials of its own. Empty texts: stopped before that piece.
  std::vector<std::string> share(const std::string& name, std::size_t count,
                                 const Sharing::Work& work);
  // Takes over what was tried beside it, in the order in which it was tried.
  void take(const Trials& trials);

 private:
  friend class Trials;
  [[nodiscard]] const TriedPlan* known(const Candidate& candidate) const;
  [[nodiscard]] TriedPlan tried(const Candidate& candidate) const;
  [[nodiscard]] TriedPlan tried_as(const Candidate& candidate, bool one_launch) const;
  const TriedPlan& keep(const Candidate& candidate, const TriedPlan& tried);
  [[nodiscard]] Plan plan_as(const Candidate& candidate, bool one_launch, bool reasons) const;
  [[nodiscard]] bool less(const PlanValues& a, const PlanValues& b) const;

  struct Space {
    RewrittenBlock block;
    std::unique_ptr<KernelSpace> space;
    std::unordered_map<std::string, TriedPlan> known;
  };

  const Graph& block_;
  const Gpu& gpu_;
  Target target_;
  EvaluatorOptions options_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::deque<Space> spaces_;
  std::optional<Candidate> best_;
  PlanValues best_values_{};
  std::size_t tried_ = 0;
  NoSharing alone_;
  bool over_ = false;
};

}  // namespace fuseline
