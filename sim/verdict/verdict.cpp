#include "sim/verdict/verdict.h"

#include <utility>

#include "base/error.h"
#include "model/blocks/block.h"
#include "sim/gpu/plan_target.h"
#include "sim/sure/estimate_bands.h"
#include "sim/verdict/choices.h"
#include "sim/verdict/sized_times.h"

namespace fuseline {

namespace {

// Tokens of one sequence, as rows of all.
Turning in_rows(Turning t, std::int64_t batch) {
  for (std::int64_t* size : {&t.searched.least, &t.searched.asked, &t.searched.most}) {
    *size *= batch;
  }
  if (t.at) *t.at *= batch;
  return t;
}

SimulatedPlan simulate_or_throw(const Variant& v, const PredictionCase& c) {
  Plan plan = make_plan(v.policy, c.model, c.workload, v.custom, plan_target(c.gpu));
  PlanEstimate estimate = simulate(plan, c.gpu, Fidelity::hierarchy);
  return {std::move(plan), std::move(estimate)};
}

class Verdicts {
 public:
  Verdicts(const PredictionCase& c, const VerdictOptions& options)
      : c_(c),
        options_(options),
        sure_(c.gpu, c.workload),
        on_(simulate_or_throw({options.on}, c)) {}

  std::optional<BlockVerdict> all() {
    const Graph block = build_block(c_.model, c_.workload);
    out_.on = options_.on;
    out_.time = on_.estimate.time;
    out_.base = custom_like(on_.plan, block);
    variants_ = {{options_.on}, {kCustomPolicy, out_.base}};
    const SimulatedPlan base = simulate_or_throw(variants_[kBase], c_);
    out_.base_time = base.estimate.time;
    for (const std::string& name : options_.policies) {
      if (name != options_.on) add_policy(name);
      if (stopped()) return std::nullopt;
    }
    for (EdgeChoice& choice : edge_choices(block, out_.base, plan_target(c_.gpu))) {
      add_edge(std::move(choice), base);
      if (stopped()) return std::nullopt;
    }
    if (options_.turnings && !add_turnings()) return std::nullopt;
    return std::move(out_);
  }

 private:
  static constexpr std::size_t kOn = 0, kBase = 1;  // places in variants_
  struct Pair {
    std::size_t without, with;
    std::vector<SizeTurning>* turnings;  // where they go
  };

  [[nodiscard]] bool stopped() const { return options_.stop != nullptr && *options_.stop; }

  void add_policy(const std::string& name) {
    const SimulatedPlan p = simulate_or_throw({name}, c_);
    PolicyVerdict v{.policy = name,
                    .gain = {.without = on_.estimate.time, .with = p.estimate.time, .verdict = {}},
                    .launches = p.estimate.launches,
                    .limit = limit_of_plan(p.plan)};
    v.gain.band = *sure_.gain(on_.estimate, p.estimate);
    v.gain.verdict = verdict_of(v.gain.gain(), v.gain.band);
    out_.policies.push_back(std::move(v));
    variants_.push_back({name});
    policy_variants_.push_back(variants_.size() - 1);
  }

  void add_edge(EdgeChoice choice, const SimulatedPlan& base) {
    EdgeVerdict v{.edge = choice.edge,
                  .tensor = choice.tensor,
                  .kept = choice.kept,
                  .rewrite = choice.rewrite,
                  .gain = std::nullopt,
                  .limit = limit_of_refusal(choice.why_not)};
    const Variant other{kCustomPolicy, choice.kept ? choice.without : choice.with};
    std::optional<SimulatedPlan> changed;
    if (choice.why_not.empty()) changed = simulate_variant(other, c_, c_.workload);
    if (changed) {
      const SimulatedPlan& without = choice.kept ? *changed : base;
      const SimulatedPlan& with = choice.kept ? base : *changed;
      const EdgeCost cost = cost_of_edge(without, with, choice.edge.from, c_.gpu);
      v.saved = cost.apart;
      v.added = cost.together;
      const auto hbm = [](const SimulatedPlan& p) {
        return (p.estimate.hbm_read + p.estimate.hbm_write).as_double();
      };
      v.hbm_bytes = hbm(with) - hbm(without);
      v.limit = cost.limit;
      FusionGain gain{.without = without.estimate.time, .with = with.estimate.time, .verdict = {}};
      gain.band = sure_.gain_of_part(without.estimate, with.estimate, cost.apart, cost.together);
      gain.verdict = verdict_of(gain.gain(), gain.band);
      v.gain = std::move(gain);
    }
    edge_variants_.push_back(changed ? variants_.size() : kOn);
    if (changed) variants_.push_back(other);
    out_.edges.push_back(std::move(v));
  }

  std::vector<Pair> pairs() {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < out_.edges.size(); ++i) {
      EdgeVerdict& v = out_.edges[i];
      if (!v.gain) continue;
      const std::size_t other = edge_variants_[i];
      pairs.push_back({v.kept ? other : kBase, v.kept ? kBase : other, &v.turnings});
    }
    for (std::size_t i = 0; i < out_.policies.size(); ++i) {
      pairs.push_back({kOn, policy_variants_[i], &out_.policies[i].turnings});
    }
    return pairs;
  }

  // The sizes that all look at first are simulated together, then each turn is narrowed.
  bool add_turnings() {
    SizedTimes times(c_, variants_);
    const std::vector<SizeAxis> axes = axes_of(c_.workload);
    SizedTimes::Wanted wanted;
    for (const SizeAxis& axis : axes) {
      // The largest first: they take longest.
      std::vector<std::int64_t> sizes = sizes_in(axis.range);
      for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
        for (std::size_t v = 0; v < variants_.size(); ++v) {
          wanted.emplace_back(v, at_size(c_.workload, axis.letter, *size));
        }
      }
    }
    ParallelOptions parallel;
    parallel.stop = options_.stop;
    parallel.progress = options_.progress;
    if (!times.know(wanted, parallel)) return false;
    for (const Pair& pair : pairs()) {
      for (const SizeAxis& axis : axes) {
        if (stopped()) return false;
        Turning t = find_turning(axis.range, [&](std::int64_t size) {
          return times.gain(pair.without, pair.with, at_size(c_.workload, axis.letter, size));
        });
        if (axis.letter == "M") t = in_rows(t, c_.workload.batch);
        pair.turnings->push_back({axis.letter, t});
      }
    }
    return true;
  }

  const PredictionCase& c_;
  const VerdictOptions& options_;
  Sureness sure_;
  SimulatedPlan on_;
  BlockVerdict out_;
  std::vector<Variant> variants_;
  std::vector<std::size_t> policy_variants_, edge_variants_;  // places in variants_
};

}  // namespace

std::optional<BlockVerdict> verdict_of_block(const PredictionCase& c,
                                             const VerdictOptions& options) {
  return Verdicts(c, options).all();
}

}  // namespace fuseline
