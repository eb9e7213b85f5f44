#include "sim/search/evaluator.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "model/assemble.h"
#include "model/implementation.h"
#include "sim/gpu/plan_target.h"
#include "sim/search/trials.h"

namespace fuseline {

namespace {

constexpr const char* kPolicyName = "search";

std::string not_kept(const Graph&, const std::vector<OpId>&, const std::vector<OpId>&,
                     const Edge&) {
  return "the search found no gain in it";
}

std::size_t place(Objective objective) { return static_cast<std::size_t>(objective); }

std::string key_of(const Grouping& grouping) { return {grouping.begin(), grouping.end()}; }

}  // namespace

Evaluator::Evaluator(const Graph& block, const Gpu& gpu, const EvaluatorOptions& options)
    : block_(block), gpu_(gpu), target_(plan_target(gpu)), options_(options) {}

std::size_t Evaluator::add(RewrittenBlock block, const std::vector<Constraint>& constraints) {
  Space& space = spaces_.emplace_back(Space{std::move(block), nullptr, {}});
  space.space = std::make_unique<KernelSpace>(space.block, target_, constraints, options_.allowed);
  return spaces_.size() - 1;
}

double Evaluator::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

bool Evaluator::late() const {
  if (options_.stop != nullptr && *options_.stop) return true;
  return options_.budget_seconds > 0 && seconds() >= options_.budget_seconds;
}

Plan Evaluator::plan_as(const Candidate& candidate, bool one_launch, bool reasons) const {
  const KernelSpace& space = *spaces_[candidate.block].space;
  PlanParts parts;
  parts.policy = kPolicyName;
  parts.graph = space.block().graph;
  parts.block = block_;
  parts.groups = space.groups(candidate.grouping);
  parts.implement = hand_written_implementation;
  parts.rule = not_kept;
  parts.persistent = one_launch;
  parts.rewrites = space.block().rewrites;
  parts.preparation = space.block().preparation;
  parts.target = target_;
  parts.reasons = reasons;
  return assemble(std::move(parts));
}

Plan Evaluator::plan(const Candidate& candidate, bool reasons) {
  static_cast<void>(values(candidate));
  return plan_as(candidate, known(candidate)->one_launch, reasons);
}

PlanEstimate Evaluator::estimate(const Plan& plan) const {
  return simulate(plan, gpu_, Fidelity::hierarchy, {.launching = options_.launching});
}

bool Evaluator::less(const PlanValues& a, const PlanValues& b) const {
  const auto rank = [&](const PlanValues& v) {
    return std::tuple(v[place(options_.objective)], v[place(Objective::time)]);
  };
  return rank(a) < rank(b);
}

TriedPlan Evaluator::tried_as(const Candidate& candidate, bool one_launch) const {
  const Plan made = plan_as(candidate, one_launch, false);
  PlanEstimate predicted;
  try {
    predicted = estimate(made);
  } catch (const InputError&) {  // more to walk than a prediction may
    return {};
  }
  PlanValues values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = value_of(static_cast<Objective>(i), made, predicted, gpu_);
  return {.values = values, .one_launch = one_launch, .simulations = 1};
}

TriedPlan Evaluator::tried(const Candidate& candidate) const {
  const Space& space = spaces_[candidate.block];
  if (!order_groups(space.block.graph, space.space->groups(candidate.grouping))) return {};
  TriedPlan out = tried_as(candidate, false);
  if (options_.allowed == Allowed::any_kernels) {
    TriedPlan other = tried_as(candidate, true);
    other.simulations += out.simulations;
    if (other.values && (!out.values || less(*other.values, *out.values)))
      out = other;
    else
      out.simulations = other.simulations;
  }
  return out;
}

const TriedPlan* Evaluator::known(const Candidate& candidate) const {
  const auto& all = spaces_[candidate.block].known;
  const auto at = all.find(key_of(candidate.grouping));
  return at == all.end() ? nullptr : &at->second;
}

const TriedPlan& Evaluator::keep(const Candidate& candidate, const TriedPlan& tried) {
  const auto [at, first] =
      spaces_[candidate.block].known.try_emplace(key_of(candidate.grouping), tried);
  if (!first) return at->second;
  tried_ += tried.simulations;
  const bool best = tried.values && (!best_ || less(*tried.values, best_values_));
  if (best) {
    best_ = candidate;
    best_values_ = *tried.values;
  }
  if (tried.values && options_.watch) options_.watch(candidate, *tried.values, best);
  return at->second;
}

std::optional<PlanValues> Evaluator::values(const Candidate& candidate) {
  const TriedPlan* before = known(candidate);
  return before != nullptr ? before->values : keep(candidate, tried(candidate)).values;
}

std::vector<std::string> Evaluator::share(const std::string& name, std::size_t count,
                                          const Sharing::Work& work) {
  Sharing& sharing = options_.sharing != nullptr ? *options_.sharing : alone_;
  SharedTexts shared = sharing.texts(name, count, work);
  over_ = sharing.agreed(late());
  return std::move(shared.texts);
}

void Evaluator::take(const Trials& trials) {
  for (const Trials::One& one : trials.all()) keep(one.candidate, one.plan);
}

double Evaluator::best_value() const {
  return best_ ? best_values_[place(options_.objective)] : std::numeric_limits<double>::infinity();
}

std::vector<Evaluator::Tried> Evaluator::front(Objective one, Objective other) const {
  std::vector<Tried> all;
  for (std::size_t b = 0; b < spaces_.size(); ++b)
    for (const auto& [key, known] : spaces_[b].known)
      if (known.values) all.push_back({{b, Grouping(key.begin(), key.end())}, *known.values});
  std::ranges::sort(all, [&](const Tried& a, const Tried& b) {
    const auto rank = [&](const Tried& t) {
      return std::tuple(t.values[place(one)], t.values[place(other)], t.candidate.block,
                        t.candidate.grouping);
    };
    return rank(a) < rank(b);
  });
  std::vector<Tried> out;
  for (Tried& t : all)
    if (out.empty() || t.values[place(other)] < out.back().values[place(other)])
      out.push_back(std::move(t));
  return out;
}

}  // namespace fuseline
