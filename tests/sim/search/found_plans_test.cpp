// What found plans compute, say and obey, and what a search refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/thread_sharing.h"
#include "model/blocks/block.h"
#include "model/config/model_files.h"
#include "model/programs/program_file.h"
#include "sim/search/search.h"
#include "tests/sim/plan_proof.h"
#include "tests/sim/search/search_support.h"
#include "tests/sim/sim_support.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

using test::against;
using test::beyond_own;
using test::kSumRounding;
using test::problem_of;
using test::training;
using test::until_complete;
using testing::HasSubstr;

ModelConfig small_model(const std::string& name) {
  return name == "gpt" ? small_gpt() : small_llama();
}

// Computed with the bytes that are predicted and the results of the reference.
TEST(FoundPlans, FoundPlansCompute) {
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
TEST(FoundPlans, PlansWhoseEpiloguesFinishANormCompute) {
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
TEST(FoundPlans, FinishesNormsInEpiloguesInDecode) {
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

TEST(FoundPlans, FoundPlanReadsBackToTheSamePrediction) {
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

TEST(FoundPlans, EveryObjectiveIsAtMostWhatTheFastestPlanHas) {
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

TEST(FoundPlans, FrontHasNoPlanThatAnotherBeatsInBoth) {
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

TEST(FoundPlans, OfAnyKernelsMayBeOneLaunch) {
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

// However many threads try plans, the same plan is found and as many were tried.
TEST(FoundPlans, AreTheSameOnSeveralThreads) {
  const Workload work = forward(1, 300);
  const Graph block = build_block(small_llama(), work);
  SearchOptions options = against(work);
  options.decisions = true;
  const SearchResult alone = search_block(block, test_gpu(), work, Launching::graph, options);
  for (const unsigned threads : {1U, 4U}) {
    ThreadSharing sharing(threads);
    options.sharing = &sharing;
    const SearchResult shared = search_block(block, test_gpu(), work, Launching::graph, options);
    EXPECT_EQ(plan_text(shared.plan, "test-gpu"), plan_text(alone.plan, "test-gpu"));
    EXPECT_EQ(shared.values, alone.values);
    EXPECT_EQ(shared.bound, alone.bound);
    EXPECT_EQ(shared.complete, alone.complete);
    EXPECT_EQ(shared.tried, alone.tried);
    EXPECT_EQ(shared.decisions.size(), alone.decisions.size());
  }
}

TEST(FoundPlans, ObeysConstraints) {
  const SearchResult free = constrained({});
  const bool fused = share_a_kernel(free.plan, "gate_up", "swiglu");
  const SearchResult other = constrained({{!fused, "gate_up", "swiglu"}});
  EXPECT_EQ(share_a_kernel(other.plan, "gate_up", "swiglu"), !fused);
  EXPECT_GE(other.value(), free.value());
  EXPECT_TRUE(
      share_a_kernel(constrained({{true, "residual1", "norm2"}}).plan, "residual1", "norm2"));
}

TEST(FoundPlans, DecisionsThatAreUndoneAreSlower) {
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
