#include "sim/search/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/chain.h"
#include "model/policy.h"
#include "model/programs/block_programs.h"
#include "sim/gpu/plan_target.h"
#include "sim/search/branch_and_bound.h"
#include "sim/search/decisions.h"
#include "sim/search/descent.h"
#include "sim/search/evaluator.h"
#include "sim/search/trials.h"
#include "sim/sure/estimate_bands.h"

namespace fuseline {

namespace {

constexpr std::size_t kDescents = 6;  // from so many of the best first plans
// Of the time, for steps from good plans: without it no bound of a rewritten block would be known
// where there are many of them.
constexpr double kForSteps = 0.4;
constexpr const char* kAttentionFused = "fuse_attention";
// Rewrites into a framework's primitives: more kernels for the same work.
constexpr std::string_view kPrimitives[] = {
    "decompose_norm", "decompose_rope",     "decompose_swiglu",       "decompose_modulation",
    "copy_slices",    "split_product_sums", "order_linear_gradients", "dequantise_cache"};

void refuse_objective(Objective objective, const Gpu& gpu, const char* option) {
  const std::string why = why_not_modelled(objective, gpu);
  if (why.empty()) return;
  throw InputError({.file = "command line",
                    .field = option,
                    .value = name_of(objective),
                    .message = "is not modelled there: " + why,
                    .allowed = "time, hbm, launches, memory"});
}

std::vector<std::string> own_names(std::vector<std::string> rewrites) {
  std::erase(rewrites, kAttentionFused);
  return rewrites;
}

bool of_primitives(const std::vector<std::string>& rewrites) {
  return std::ranges::any_of(rewrites, [](const std::string& name) {
    return std::ranges::find(kPrimitives, name) != std::end(kPrimitives);
  });
}

class Search {
 public:
  Search(const Graph& block, const Gpu& gpu, const Workload& workload, Launching launching,
         const SearchOptions& options)
      : block_(block),
        gpu_(gpu),
        options_(options),
        sure_(gpu, workload),
        evaluator_(block, gpu,
                   {.objective = options.objective,
                    .launching = launching,
                    .allowed = options.allowed,
                    .budget_seconds = options.budget_seconds,
                    .stop = options.stop,
                    .watch = watcher(),
                    .sharing = options.sharing}) {
    refuse_objective(options.objective, gpu, "--objective");
    if (options.front_with) refuse_objective(*options.front_with, gpu, "--pareto");
  }

  SearchResult run() {
    make_policies();
    make_space();
    first_plans();
    descents();
    if (options_.front_with) front_steps();
    LeastCosts costs(gpu_);
    const SpaceBound bound = bound_space(evaluator_, costs, [&](double value) {
      say(fmt::format("bound {:.1f}", shown(options_.objective, value)));
    });
    out_.bound = bound.value;
    out_.complete = bound.complete;
    out_.kernels = bound.kernels;
    take_best();
    if (options_.front_with) take_front();
    if (options_.decisions && out_.policys_own.empty()) explain();
    out_.tried = evaluator_.tried();
    out_.seconds = evaluator_.seconds();
    out_.stopped = options_.stop != nullptr && *options_.stop;
    return std::move(out_);
  }

 private:
  std::function<void(const Candidate&, const PlanValues&, bool)> watcher() {
    if (!options_.watch) return {};
    return [this](const Candidate& candidate, const PlanValues& values, bool best) {
      if (!best) return options_.watch(values, nullptr);
      const Plan plan = evaluator_.plan(candidate);  // with its notes, which say what is on chip
      options_.watch(values, &plan);
    };
  }

  void say(const std::string& what) {
    if (!options_.progress) return;
    const double best = evaluator_.best_value();
    const std::string found = std::isfinite(best)
                                  ? fmt::format("best {:.1f} {}, ", shown(options_.objective, best),
                                                unit_of(options_.objective))
                                  : "";
    const double budget = options_.budget_seconds;
    options_.progress(found + what, budget > 0 ? std::min(1.0, evaluator_.seconds() / budget) : 0);
  }

  // Programs of one's own stand for operators as they are: a plan that moves these would leave the
  // programs out.
  void refuse_programs() const {
    if (block_.programs().empty()) return;
    throw InputError({.field = "--block",
                      .value = block_.programs().front()->file->source->file,
                      .message = "computes operators of the block, which a search would plan anew",
                      .allowed = "a block without 'computed', or predict --policy all"});
  }

  void make_policies() {
    refuse_programs();
    const Target target = plan_target(gpu_);
    for (const std::string& name : options_.policies) {
      say(name);
      plans_.push_back(make_plan(name, block_, target));
      estimates_.push_back(evaluator_.estimate(plans_.back()));
    }
  }

  void make_space() {
    std::vector<RewrittenBlock> blocks =
        rewritten_blocks(block_, options_.allowed == Allowed::with_chains);
    for (const Plan& plan : plans_) {
      RewrittenBlock like = rewritten_like(plan);
      like.rewrites = own_names(std::move(like.rewrites));
      const bool known = std::ranges::any_of(
          blocks, [&](const RewrittenBlock& b) { return b.rewrites == like.rewrites; });
      if (!known && !of_primitives(like.rewrites)) blocks.push_back(std::move(like));
    }
    blocks = with_operators(std::move(blocks), options_.constraints);
    const auto add_all = [&](const std::vector<Constraint>& constraints) {
      std::size_t possible = 0;
      for (const RewrittenBlock& b : blocks) {
        const std::size_t number = evaluator_.add(b, constraints);
        if (!evaluator_.space(number).searchable()) continue;
        if (constraints.empty() || evaluator_.space(number).least_fused()) ++possible;
      }
      return possible;
    };
    if (blocks.empty() || add_all(options_.constraints) == 0) refuse_constraints(blocks);
    out_.rewrites = evaluator_.blocks();
  }

  // The first constraint without which some plan would be left.
  [[noreturn]] void refuse_constraints(const std::vector<RewrittenBlock>& blocks) {
    std::vector<Constraint> so_far;
    for (const Constraint& c : options_.constraints) {
      so_far.push_back(c);
      bool possible = false;
      for (const RewrittenBlock& b : blocks) {
        KernelSpace space(b, plan_target(gpu_), so_far, options_.allowed);
        possible = possible || (space.searchable() && space.least_fused().has_value());
      }
      if (possible && !blocks.empty()) continue;
      const bool alone = so_far.size() == 1;
      throw InputError(
          {.file = "command line",
           .field = c.option(),
           .value = c.text(),
           .message = alone ? "leaves no plan: no legal kernel holds both"
                            : "leaves no plan beside the constraints before it",
           .allowed = "operators that explain shows as neighbours of one kernel, or that can be"});
    }
    throw InputError({.file = "command line",
                      .field = "--model",
                      .message = fmt::format("the block has more than {} operators", kMostUnits),
                      .allowed = "a smaller block"});
  }

  // Every policy's kernels, and for each rewritten block the plan that fuses nothing and those that
  // fuse all that goes.
  void first_plans() {
    for (const Plan& plan : plans_) outside_.push_back(try_policy(plan));
    say("first plans");
    const auto first_of_block = [&](std::size_t b) {
      Trials trials(evaluator_);
      KernelSpace& space = trials.space(b);
      if (space.searchable() && !trials.over())
        for (const std::optional<Grouping>& grouping :
             {space.most_fused(true), space.most_fused(false), space.least_fused()})
          if (grouping) static_cast<void>(trials.values({b, *grouping}));
      return trials.text();
    };
    for (const std::string& text :
         evaluator_.share("first plans", evaluator_.blocks(), first_of_block)) {
      const Trials trials(evaluator_, text);
      evaluator_.take(trials);
      for (const Trials::One& one : trials.all())
        if (one.plan.values) starts_.push_back({*one.plan.values, one.candidate});
    }
  }

  void start(const Candidate& candidate) {
    if (const auto values = evaluator_.values(candidate)) starts_.push_back({*values, candidate});
  }

  // Why no kernels of ours do what the plan's are predicted to do; empty: they do, or others' do.
  std::string beyond_own(const Plan& plan) const {
    if (options_.allowed == Allowed::any_kernels) return "";
    for (const Kernel& k : plan.kernels) {
      if (handed_over(k)) {
        if (options_.allowed == Allowed::with_chains) continue;
        return "two products are one kernel, which was slower than two wherever it was measured";
      }
      if (k.phases.size() != 1)
        return "one launch, predicted with grid barriers between its phases: our kernel of a whole "
               "decode block has counters in their place, and no other block has one";
      const Program& program = k.phases.front();
      if (std::holds_alternative<AttentionMainloop>(program.mainloop) && !program.prologue.empty())
        return "its attention rotates or stores what it loads: ours does that in a launch of its "
               "own, which the prediction leaves out";
    }
    return "";
  }

  // Tries the kernels of a policy's plan as our own. Says why they are not in the space.
  std::string try_policy(const Plan& plan) {
    if (std::string why = beyond_own(plan); !why.empty()) return why;
    if (std::ranges::any_of(
            plan.kernels, [](const Kernel& k) { return k.phases.size() != 1 && !handed_over(k); }))
      return "";
    if (of_primitives(plan.rewrites)) return "its operators are a framework's primitives";
    Groups groups;
    for (const Kernel& k : plan.kernels) groups.push_back(k.ops);
    const std::vector<std::string> names = own_names(plan.rewrites);
    for (std::size_t b = 0; b < evaluator_.blocks(); ++b) {
      KernelSpace& space = evaluator_.space(b);
      if (space.block().rewrites != names || !space.searchable()) continue;
      const auto grouping = space.grouping_of(groups);
      if (!grouping) return "attention's scores go through memory";
      if (!space.legal(*grouping)) return "its kernels are not all legal here";
      start({b, *grouping});
      return "";
    }
    return "the constraints rule it out";
  }

  [[nodiscard]] bool late() const {
    return options_.budget_seconds > 0 &&
           evaluator_.seconds() > kForSteps * options_.budget_seconds;
  }

  void descents() {
    const auto place = static_cast<std::size_t>(options_.objective);
    const auto rank = [place](const Start& s) { return s.values[place]; };
    std::ranges::stable_sort(starts_, {}, rank);
    std::vector<Start> from;  // each block once: its best first plan
    for (const Start& s : starts_) {
      const bool again = std::ranges::any_of(
          from, [&](const Start& f) { return f.candidate.block == s.candidate.block; });
      if (!again && from.size() < kDescents) from.push_back(s);
    }
    say("steps from good plans");
    if (evaluator_.over()) return;
    const auto steps = [&](std::size_t i) {
      Trials trials(evaluator_);
      if (!late()) descend(trials, from[i].candidate, rank_of(place));
      return trials.text();
    };
    for (const std::string& text : evaluator_.share("steps", from.size(), steps))
      evaluator_.take({evaluator_, text});
  }

  static Score rank_of(std::size_t place) {
    return [place](const PlanValues& v) { return v[place]; };
  }

  // Kernels that both plans have run alike, where both are our own: the part that differs has the
  // band of a gain.
  Band band_beside(const PlanEstimate& policy) const {
    if (maker_of(policy.policy) != "own" || maker_of(out_.estimate.policy) != "own")
      return *sure_.gain(policy, out_.estimate);
    const DifferentKernels parts = different_kernels(policy, out_.estimate);
    return sure_.gain_of_part(policy, out_.estimate, parts.before, parts.after);
  }

  void take_best() {
    if (!evaluator_.best())
      throw InputError({.file = "command line",
                        .field = "--budget",
                        .value = fmt::format("{}", options_.budget_seconds),
                        .message = "was over before a plan could be tried",
                        .allowed = "more seconds"});
    best_ = *evaluator_.best();
    out_.objective = options_.objective;
    out_.front_with = options_.front_with;
    out_.allowed = options_.allowed;
    out_.plan = evaluator_.plan(best_);
    out_.estimate = evaluator_.estimate(out_.plan);
    out_.values = evaluator_.best_values();
    take_policys_own();
    out_.time_band = *sure_.time(out_.estimate);
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      PolicyComparison p{
          .policy = plans_[i].policy,
          .launches = estimates_[i].launches,
          .gain =
              FusionGain{.without = estimates_[i].time, .with = out_.estimate.time, .verdict = {}},
          .outside = outside_[i]};
      for (std::size_t o = 0; o < p.values.size(); ++o)
        p.values[o] = value_of(static_cast<Objective>(o), plans_[i], estimates_[i], gpu_);
      p.gain->band = band_beside(estimates_[i]);
      p.gain->verdict = verdict_of(p.gain->gain(), p.gain->band);
      out_.policies.push_back(std::move(p));
    }
  }

  // A policy's plan as it is belongs to the space: where its own kernels are better, it is found.
  void take_policys_own() {
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!beyond_own(plans_[i]).empty() || !options_.constraints.empty()) continue;
      PlanValues values{};
      for (std::size_t o = 0; o < values.size(); ++o)
        values[o] = value_of(static_cast<Objective>(o), plans_[i], estimates_[i], gpu_);
      const auto place = static_cast<std::size_t>(options_.objective);
      if (values[place] >= out_.values[place]) continue;
      out_.plan = plans_[i];
      out_.estimate = estimates_[i];
      out_.values = values;
      out_.policys_own = plans_[i].policy;
    }
    out_.bound = std::min(out_.bound, out_.value());
  }

  // Steps that make products of powers of both smaller reach plans between the two ends.
  void front_steps() {
    if (!evaluator_.best()) return;
    const Candidate from = *evaluator_.best();
    const auto one = static_cast<std::size_t>(options_.objective);
    const auto other = static_cast<std::size_t>(*options_.front_with);
    constexpr std::array<double, 4> kWeights = {0.0, 0.25, 0.5, 0.75};
    say("front");
    // All of one block, whose space is one piece's at a time.
    const auto steps = [&](std::size_t) {
      Trials trials(evaluator_);
      for (const double weight : kWeights)
        descend(trials, from, [&](const PlanValues& v) {
          return std::pow(std::max(v[one], 1e-30), weight) *
                 std::pow(std::max(v[other], 1e-30), 1 - weight);
        });
      return trials.text();
    };
    for (const std::string& text : evaluator_.share("front", 1, steps))
      evaluator_.take({evaluator_, text});
  }

  void take_front() {
    for (const Evaluator::Tried& t : evaluator_.front(options_.objective, *options_.front_with))
      out_.front.push_back({t.values, evaluator_.plan(t.candidate)});
  }

  void explain() {
    say("decisions");
    out_.decisions = decisions_of(evaluator_, best_, out_.estimate, sure_);
  }

  struct Start {
    PlanValues values;
    Candidate candidate;
  };

  const Graph& block_;
  const Gpu& gpu_;
  const SearchOptions& options_;
  Sureness sure_;
  Evaluator evaluator_;
  std::vector<Plan> plans_;  // of the policies
  std::vector<PlanEstimate> estimates_;
  std::vector<std::string> outside_;
  std::vector<Start> starts_;
  Candidate best_;
  SearchResult out_;
};

}  // namespace

SearchResult search_block(const Graph& block, const Gpu& gpu, const Workload& workload,
                          Launching launching, const SearchOptions& options) {
  return Search(block, gpu, workload, launching, options).run();
}

SearchResult search_block(const PredictionCase& c, const SearchOptions& options) {
  return search_block(build_block(c.model, c.workload), c.gpu, c.workload, c.launching, options);
}

}  // namespace fuseline
