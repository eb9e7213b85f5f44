// The search against all plans of small graphs, against bounds and against every policy.
#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "model/primitives/primitives.h"
#include "sim/search/search.h"
#include "tests/sim/search/exhaustive.h"
#include "tests/sim/search/random_graph.h"
#include "tests/sim/search/search_support.h"
#include "tests/sim/sim_support.h"

namespace fuseline {
namespace {

using test::against;
using test::beyond_own;
using test::kSumRounding;
using test::training;
using test::until_complete;

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

}  // namespace
}  // namespace fuseline
