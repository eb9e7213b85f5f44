// The search against all plans of small graphs, against every policy, and what it refuses.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/primitives/primitives.h"
#include "model/programs/program_file.h"
#include "sim/search/search.h"
#include "tests/sim/search/exhaustive.h"
#include "tests/sim/search/random_graph.h"
#include "tests/sim/sim_support.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using test::problem_of;
using testing::HasSubstr;

// Two sums of the same times in another order.
constexpr double kSumRounding = 1e-9;

SearchOptions until_complete() {
  SearchOptions options;
  options.budget_seconds = 0;
  options.decisions = false;
  return options;
}

SearchOptions against(const Workload& work) {
  SearchOptions options = until_complete();
  for (const PolicyInfo& p : policies())
    if (p.trains || work.phase != Phase::train) options.policies.push_back(p.name);
  return options;
}

// Plans that no kernels of ours run as they are predicted.
bool beyond_own(const PolicyComparison& p) {
  return p.outside.starts_with("one launch") || p.outside.starts_with("its attention rotates");
}

// Of the policies whose plans may be found.
double best_of_policies(const SearchResult& r) {
  double best = std::numeric_limits<double>::infinity();
  for (const PolicyComparison& p : r.policies)
    if (!beyond_own(p)) best = std::min(best, p.values[0]);
  return best;
}

// A GPU that lowers its clock under these small graphs.
Gpu limited_gpu() {
  Gpu gpu = test_gpu();
  gpu.tdp = Watts(gpu.constants.power.idle_w + 15);
  gpu.constants.power.reaction = microseconds(20);
  return gpu;
}

void expect_optimum(int graphs, unsigned seed) {
  std::mt19937 random(seed);
  std::size_t plans = 0;
  double slowest = 1;
  for (int i = 0; i < graphs; ++i) {
    const Gpu gpu = i % 2 == 0 ? test_gpu() : limited_gpu();
    const Graph block = test::random_small_graph(random);
    ASSERT_LE(block.ops().size(), 8U);
    const SearchResult found = search_block(block, gpu, {}, Launching::graph, until_complete());
    double best = std::numeric_limits<double>::infinity();
    for (const RewrittenBlock& rewritten : rewritten_blocks(block)) {
      test::AllPlans all(block, rewritten, gpu);
      all.each([&](const Groups&, const PlanEstimate& e) {
        ++plans;
        best = std::min(best, e.time.value());
        slowest = std::min(slowest, e.clock_factor);
      });
    }
    std::string where = "graph " + std::to_string(i) + " of seed " + std::to_string(seed) + ":";
    for (const Kernel& k : found.plan.kernels) where += " " + k.name;
    EXPECT_NEAR(found.value() / best, 1, kSumRounding) << where;
    EXPECT_TRUE(found.complete) << where;
    EXPECT_LE(found.bound, best * (1 + kSumRounding)) << where;
    EXPECT_EQ(check_plan(found.plan), std::vector<std::string>{}) << where;
  }
  EXPECT_GT(plans, static_cast<std::size_t>(graphs) * 10);
  EXPECT_LT(slowest, 0.95);  // some were limited
}

TEST(Search, FindsTheOptimumOfSmallGraphs) { expect_optimum(25, 7); }
TEST(SlowSearch, FindsTheOptimumOf200SmallGraphs) { expect_optimum(200, 11); }

// The sum of least costs, at the clock that the plan ran at, is below the time of every plan.
TEST(Search, LeastCostsAreBelowEveryPlan) {
  std::mt19937 random(3);
  const Gpu gpu = test_gpu();
  std::size_t compared = 0;
  double tightest = 0;
  for (int i = 0; i < 8; ++i) {
    const Graph block = test::random_small_graph(random);
    LeastCosts costs(gpu);
    for (const RewrittenBlock& rewritten : rewritten_blocks(block)) {
      KernelSpace space(rewritten, plan_target(gpu), {}, Allowed::own_kernels);
      test::AllPlans all(block, rewritten, gpu);
      all.each([&](const Groups& groups, const PlanEstimate& e) {
        const auto grouping = space.grouping_of(groups);
        ASSERT_TRUE(grouping.has_value());
        Seconds least;
        Bytes hbm;
        for (const UnitSet& kernel : space.kernels_of(*grouping)) {
          least += costs.of(space, kernel).time(gpu, e.clock_factor);
          hbm += costs.of(space, kernel).hbm;
        }
        EXPECT_LE(least.value(), e.time.value() * (1 + kSumRounding));
        EXPECT_LE(hbm, e.hbm_read + e.hbm_write);
        tightest = std::max(tightest, least / e.time);
        ++compared;
      });
    }
  }
  EXPECT_GT(compared, 100U);
  EXPECT_GT(tightest, 0.9);  // a bound of nothing would pass too
}

// The same of shipped blocks with caches, experts, scans and backward passes, for the policies
// whose kernels are our own.
TEST(Search, LeastCostsAreBelowPlansOfShippedBlocks) {
  const Gpu gpu = load_gpu("h200");
  for (const char* name :
       {"llama3-8b", "mixtral-8x7b", "deepseek-v2-lite", "sd3-medium", "jamba"}) {
    for (Workload work : {forward(1, 300), decode(8, 1, 2048), forward(1, 256)}) {
      const ModelConfig model = load_model(name);
      if (work.seq == 256) work.phase = Phase::train;
      if (work.phase == Phase::decode && std::string(name) == "sd3-medium") continue;
      const Graph block = build_block(model, work);
      LeastCosts costs(gpu);
      for (const char* policy : {"per-operator", "coda"}) {
        const Plan plan = make_plan(policy, block, plan_target(gpu));
        const RewrittenBlock like = rewritten_like(plan);
        KernelSpace space(like, plan_target(gpu), {}, Allowed::own_kernels);
        Groups groups;
        for (const Kernel& k : plan.kernels) groups.push_back(k.ops);
        const auto grouping = space.grouping_of(groups);
        ASSERT_TRUE(grouping.has_value());
        const PlanEstimate e = simulate(plan, gpu, Fidelity::hierarchy);
        Seconds least;
        Bytes hbm;
        for (const UnitSet& kernel : space.kernels_of(*grouping)) {
          least += costs.of(space, kernel).time(gpu, e.clock_factor);
          hbm += costs.of(space, kernel).hbm;
        }
        const std::string where = std::string(name) + " " + name_of(work.phase) + " " + policy;
        EXPECT_LE(least.value(), e.time.value() * (1 + kSumRounding)) << where;
        EXPECT_GT(least.value(), e.time.value() * 0.5) << where;
        EXPECT_LE(hbm, e.hbm_read + e.hbm_write) << where;
      }
    }
  }
}

struct SearchCase {
  const char* model;
  Workload work;
};

Workload training(std::int64_t batch, std::int64_t seq) {
  Workload work = forward(batch, seq);
  work.phase = Phase::train;
  return work;
}

void expect_never_worse(const std::vector<SearchCase>& cases, double budget,
                        Allowed allowed = Allowed::own_kernels) {
  const Gpu gpu = load_gpu("h200");
  for (const SearchCase& c : cases) {
    SearchOptions options = against(c.work);
    options.budget_seconds = budget;
    options.allowed = allowed;
    const ModelConfig model = load_model(c.model);
    const SearchResult r =
        search_block(build_block(model, c.work), gpu, c.work, Launching::graph, options);
    const std::string where = std::string(c.model) + " " + name_of(c.work.phase) + " " +
                              std::to_string(c.work.batch) + " x " + std::to_string(c.work.seq);
    EXPECT_LE(r.value(), best_of_policies(r) * (1 + kSumRounding)) << where;
    if (allowed == Allowed::any_kernels) {
      for (const PolicyComparison& p : r.policies) EXPECT_FALSE(beyond_own(p)) << p.policy;
    }
    EXPECT_LE(r.bound, r.value()) << where;
    if (r.complete) {
      EXPECT_EQ(r.bound, r.value()) << where;
    }
    EXPECT_EQ(check_plan(r.plan), std::vector<std::string>{}) << where;
    for (const PolicyComparison& p : r.policies)
      if (p.outside.empty()) {
        EXPECT_LE(r.bound, p.values[0] * (1 + kSumRounding)) << where << p.policy;
      }
  }
}

TEST(Search, IsNeverWorseThanAPolicy) {
  expect_never_worse({{"llama2-7b", forward(1, 512)},
                      {"llama3-8b", decode(8, 1, 1024)},
                      {"gpt2-xl", decode(1, 1, 512)},
                      {"mamba2-2.7b", forward(1, 256)}},
                     5);
}

TEST(Search, OfAnyKernelsIsNeverWorseThanAnyPolicy) {
  expect_never_worse({{"llama2-7b", forward(1, 256)}, {"gpt2-xl", decode(2, 1, 512)}}, 3,
                     Allowed::any_kernels);
}

TEST(SlowSearch, IsNeverWorseThanAPolicyOnMoreBlocks) {
  expect_never_worse({{"llama3-8b", forward(2, 1500)},
                      {"mixtral-8x7b", decode(16, 1, 2048)},
                      {"sd3-medium", forward(1, 1024)},
                      {"gemma2-9b", forward(1, 700)},
                      {"bert-large", forward(8, 384)},
                      {"t5-large", forward(4, 512)},
                      {"gpt2-xl", training(1, 512)},
                      {"deepseek-v2-lite", decode(4, 1, 1024)}},
                     2);
}

std::vector<SearchCase> forty_blocks() {
  std::vector<SearchCase> cases;
  for (const char* model : {"llama2-7b", "llama3-8b", "qwen3-8b", "gemma2-9b", "gpt2-xl"}) {
    const std::int64_t most = std::string(model) == "gpt2-xl" ? 1024 : 4096;
    for (const Workload& work :
         {forward(1, 333), forward(1, 1000), forward(8, 512), decode(1, 1, most),
          decode(16, 1, most / 2), decode(64, 1, 1000), training(1, 512)})
      cases.push_back({model, work});
  }
  for (const char* model : {"mixtral-8x7b", "deepseek-v2-lite"})
    for (const Workload& work : {forward(1, 777), decode(8, 1, 2048)})
      cases.push_back({model, work});
  cases.push_back({"sd3-medium", forward(2, 1024)});
  return cases;
}

TEST(LongSearch, IsNeverWorseThanAPolicyOn40Blocks) {
  ASSERT_EQ(forty_blocks().size(), 40U);
  expect_never_worse(forty_blocks(), 10);
  expect_never_worse(forty_blocks(), 10, Allowed::any_kernels);
}

ModelConfig small_model(const std::string& name) {
  return name == "gpt" ? small_gpt() : small_llama();
}

// Computed with the bytes that are predicted and the results of the reference.
TEST(Search, FoundPlansCompute) {
  for (const std::string name : {"llama", "gpt"}) {
    for (const Workload& work : {forward(2, 37), decode(3, 1, 40), training(1, 33)}) {
      ModelConfig model = small_model(name);
      model.D = 128;
      model.F = 192;
      SearchOptions options = until_complete();
      options.budget_seconds = 1;
      const SearchResult r =
          search_block(build_block(model, work), test_gpu(), work, Launching::graph, options);
      test::expect_proved(r.plan, name + " " + name_of(work.phase));
    }
  }
}

// Tiles that sum a norm's partials themselves, in every phase: with the predicted bytes, and right.
TEST(Search, PlansWhoseEpiloguesFinishANormCompute) {
  for (const auto& [name, reader] : {std::pair{"llama", "qkv_scale"}, {"gpt", "qkv_norm"}}) {
    for (const Workload& work : {forward(2, 37), decode(3, 1, 40), training(1, 33)}) {
      ModelConfig model = small_model(name);
      model.D = 300;  // three partials of a row, the last of 44 columns
      SearchOptions options = until_complete();
      options.budget_seconds = 1;
      options.constraints = {{.together = true, .a = "finish_norm1", .b = reader}};
      const SearchResult r =
          search_block(build_block(model, work), test_gpu(), work, Launching::graph, options);
      const std::string where = std::string(name) + " " + name_of(work.phase);
      const bool in_epilogue = std::ranges::any_of(r.plan.kernels, [&](const Kernel& k) {
        return std::ranges::any_of(k.phases.front().body,
                                   [](const Primitive& p) { return p.is<LoadRowSums>(); });
      });
      EXPECT_TRUE(in_epilogue) << where;
      test::expect_proved(r.plan, where);
      const ProgramFile file = read_program_text(plan_text(r.plan, "test-gpu"), "found.fuse");
      EXPECT_TRUE(file.readable()) << where;
    }
  }
}

// In decode a launch is a large part of a block: the finishers' are saved.
TEST(Search, FinishesNormsInEpiloguesInDecode) {
  const Workload work = decode(8, 1, 1024);
  SearchOptions options = against(work);
  options.budget_seconds = 5;
  const SearchResult r = search_block(build_block(load_model("llama3-8b"), work), load_gpu("h200"),
                                      work, Launching::graph, options);
  for (const Kernel& k : r.plan.kernels)
    EXPECT_NE(k.implementation, Implementation::finisher) << k.name;
  for (const PolicyComparison& p : r.policies)
    if (p.policy == "coda") {
      EXPECT_LT(r.value(), p.values[0]);
    }
}

TEST(Search, FoundPlanReadsBackToTheSamePrediction) {
  for (const Workload& work : {forward(1, 300), training(1, 200)}) {
    SearchOptions options = until_complete();
    options.budget_seconds = 1;
    const SearchResult r =
        search_block(build_block(small_llama(), work), test_gpu(), work, Launching::graph, options);
    const ProgramFile file = read_program_text(plan_text(r.plan, "test-gpu"), "found.fuse");
    ASSERT_TRUE(file.readable()) << name_of(work.phase);
    EXPECT_EQ(simulate(file.plan, test_gpu(), Fidelity::hierarchy).time, r.estimate.time);
  }
}

TEST(Search, EveryObjectiveIsAtMostWhatTheFastestPlanHas) {
  const Workload work = forward(1, 400);
  const Graph block = build_block(small_llama(), work);
  const SearchResult fastest =
      search_block(block, test_gpu(), work, Launching::graph, against(work));
  for (const std::string& word : objective_words()) {
    const auto objective = static_cast<Objective>(std::ranges::find(objective_words(), word) -
                                                  objective_words().begin());
    SearchOptions options = against(work);
    options.objective = objective;
    // A bound of memory says little, so such a search would not end. The others end long before.
    options.budget_seconds = word == "memory" ? 2 : 300;
    const SearchResult r = search_block(block, test_gpu(), work, Launching::graph, options);
    const auto place = static_cast<std::size_t>(objective);
    EXPECT_LE(r.value(), fastest.values[place]) << word;
    EXPECT_LE(r.bound, r.value()) << word;
    for (const PolicyComparison& p : r.policies)
      if (!beyond_own(p)) {
        EXPECT_LE(r.value(), p.values[place]) << word << " " << p.policy;
      }
  }
}

TEST(Search, FrontHasNoPlanThatAnotherBeatsInBoth) {
  const Workload work = forward(1, 2000);
  SearchOptions options = until_complete();
  options.objective = Objective::time;
  options.front_with = Objective::hbm;
  const SearchResult r =
      search_block(build_block(small_llama(), work), test_gpu(), work, Launching::graph, options);
  ASSERT_FALSE(r.front.empty());
  EXPECT_EQ(r.front.front().values[0], r.value());
  for (std::size_t i = 1; i < r.front.size(); ++i) {
    EXPECT_GT(r.front[i].values[0], r.front[i - 1].values[0]);
    EXPECT_LT(r.front[i].values[1], r.front[i - 1].values[1]);
  }
}

TEST(Search, OfAnyKernelsMayBeOneLaunch) {
  const Workload work = decode(4, 1, 600);
  SearchOptions options = against(work);
  options.allowed = Allowed::any_kernels;
  const SearchResult r =
      search_block(build_block(small_llama(), work), test_gpu(), work, Launching::graph, options);
  for (const PolicyComparison& p : r.policies)
    EXPECT_LE(r.value(), p.values[0] * (1 + kSumRounding)) << p.policy;
  EXPECT_LE(r.bound, r.value());
  EXPECT_EQ(r.plan.kernels.size(), 1U);
}

bool share_a_kernel(const Plan& plan, const std::string& a, const std::string& b) {
  const auto from = plan.graph.find_op(a), to = plan.graph.find_op(b);
  return from && to && std::ranges::any_of(plan.kernels, [&](const Kernel& k) {
           return std::ranges::find(k.ops, *from) != k.ops.end() &&
                  std::ranges::find(k.ops, *to) != k.ops.end();
         });
}

SearchResult constrained(const std::vector<Constraint>& constraints) {
  const Workload work = forward(1, 300);
  SearchOptions options = against(work);
  options.constraints = constraints;
  return search_block(build_block(small_llama(), work), test_gpu(), work, Launching::graph,
                      options);
}

TEST(Search, ObeysConstraints) {
  const SearchResult free = constrained({});
  const bool fused = share_a_kernel(free.plan, "gate_up", "swiglu");
  const SearchResult other = constrained({{!fused, "gate_up", "swiglu"}});
  EXPECT_EQ(share_a_kernel(other.plan, "gate_up", "swiglu"), !fused);
  EXPECT_GE(other.value(), free.value());
  EXPECT_TRUE(
      share_a_kernel(constrained({{true, "residual1", "norm2"}}).plan, "residual1", "norm2"));
}

TEST(Search, DecisionsThatAreUndoneAreSlower) {
  const Workload work = forward(1, 1000);
  SearchOptions options = until_complete();
  options.decisions = true;
  const SearchResult r =
      search_block(build_block(llama_7b(), work), test_gpu(), work, Launching::graph, options);
  ASSERT_TRUE(r.complete);
  ASSERT_GE(r.decisions.size(), 3U);
  for (const Decision& d : r.decisions) {
    EXPECT_GE(d.gain.gain(), 1 - kSumRounding) << d.what;  // the plan is the best of the space
    EXPECT_LE(d.gain.band.low, 1) << d.what;
    EXPECT_GE(d.gain.band.high, 1) << d.what;
  }
}

TEST(SearchRefuses, ConstraintsThatLeaveNoPlan) {
  const InputProblem alone = problem_of([] { constrained({{true, "qkv", "down"}}); });
  EXPECT_EQ(alone.field, "--keep-together");
  EXPECT_EQ(alone.value, "qkv,down");
  const InputProblem second = problem_of([] {
    constrained({{true, "residual1", "norm2"}, {false, "norm2", "residual1"}});
  });
  EXPECT_EQ(second.field, "--keep-apart");
  EXPECT_THAT(second.message, HasSubstr("beside the constraints before it"));
  const InputProblem unknown = problem_of([] { constrained({{false, "gate_pu", "swiglu"}}); });
  EXPECT_EQ(unknown.nearest, "gate_up");
}

TEST(SearchRefuses, EnergyWhereItIsNotModelled) {
  Gpu gpu = test_gpu();
  gpu.constants.power.tensor_pj_per_flop = 0;
  SearchOptions options = until_complete();
  options.objective = Objective::energy;
  const Workload work = forward(1, 64);
  const InputProblem p = problem_of([&] {
    search_block(build_block(small_llama(), work), gpu, work, Launching::graph, options);
  });
  EXPECT_EQ(p.field, "--objective");
  EXPECT_EQ(p.value, "energy");
  EXPECT_THAT(p.message, HasSubstr("not modelled"));
}

}  // namespace
}  // namespace fuseline
