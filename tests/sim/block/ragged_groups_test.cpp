// A mixture of experts between routing and its inverse: rows in groups of different lengths, each
// with weights of its own.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "model/expert_routing.h"
#include "model/operators/all_operators.h"
#include "model/ragged_rows.h"
#include "sim/memory/traffic.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/experts_by_hand.h"

namespace fuseline {
namespace {

using test::expect_proved;
using test::experts;
using test::GraphByHand;
using test::pick;
using test::Proof;

TEST(RaggedGroups, AreProvedUnderEveryPolicy) {
  const RaggedRows rows{{3, 130, 1, 64, 17}};
  const Graph block = experts(rows, 7, 24, 20);
  const Proof proof(block);
  for (const std::string& policy : executor::all_policies())
    proof.of(make_plan(policy, block), policy);
}

TEST(RaggedGroups, AreProvedForRandomLengths) {
  std::mt19937 random(5);
  for (int round = 0; round < 16; ++round) {
    RaggedRows rows;
    for (std::int64_t g = pick(random, 1, 9); g > 0; --g)
      rows.groups.push_back(round % 4 == 0 ? pick(random, 1, 3) : pick(random, 1, 400));
    const std::int64_t all = std::ssize(rows.groups) + pick(random, 0, 3);
    const std::string policy = round % 2 == 0 ? "coda" : "torch-compile";
    expect_proved(
        make_plan(policy, experts(rows, all, 8 * pick(random, 1, 12), 8 * pick(random, 1, 12))),
        policy + " round " + std::to_string(round));
  }
}

// A GPU whose library has no kernel of its own for groups runs them as it runs other products.
TEST(RaggedGroups, InOneGroupAreAGemm) {
  const RaggedRows rows{{300}};
  GraphByHand plain;
  const Operand x = plain.tensor("x", Role::input, 300, 512);
  const Operand w = plain.tensor("w_up", Role::weight, 1024, 512);
  const Operand y = plain.tensor("y", Role::output, 300, 1024);
  GraphByHand grouped = plain;
  plain.op("up", operators::gemm, {x, w}, {y});
  grouped.op("up", operators::grouped_gemm, {x, w}, {y}, rows);
  // Beside the kernel the framework launches one that prepares its groups.
  const Gpu a100 = load_gpu("a100");
  const PlanEstimate a = simulate(make_plan("eager", plain.graph), a100, Fidelity::hierarchy);
  const PlanEstimate b = simulate(make_plan("eager", grouped.graph), a100, Fidelity::hierarchy);
  ASSERT_EQ(b.kernels.size(), 2U);
  EXPECT_EQ(a.hbm_read, b.hbm_read);
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_NEAR(a.kernels[0].time.value(), b.kernels[0].time.value(),
              1e-9 * a.kernels[0].time.value());
  // On Hopper its kernel for groups is another one, and loads more slowly.
  const Gpu h200 = load_gpu("h200");
  const PlanEstimate c = simulate(make_plan("eager", plain.graph), h200, Fidelity::hierarchy);
  const PlanEstimate d = simulate(make_plan("eager", grouped.graph), h200, Fidelity::hierarchy);
  EXPECT_EQ(c.flops, d.flops);
  EXPECT_GT(d.kernels[0].time, c.kernels[0].time);
  // Our own mainloop takes groups, and the library whole products.
  EXPECT_EQ(make_plan("coda", grouped.graph).kernels[0].implementation,
            Implementation::epilogue_gemm);
  EXPECT_EQ(make_plan("coda", plain.graph).kernels[0].implementation, Implementation::library_gemm);
}

// Few rows: what a mixture reads are the weights of the experts that have rows, once.
TEST(RaggedGroups, ReadTheWeightsOfTheirExpertsOnly) {
  const std::int64_t D = 2048, F = 768, all = 128;
  const RaggedRows rows = assumed_rows(16 * 8, all);
  const Graph graph = experts(rows, all, D, F);
  const PlanEstimate e = simulate(make_plan("coda", graph), load_gpu("h200"), Fidelity::hierarchy);
  const std::int64_t weights = std::ssize(rows.groups) * 3 * F * D * 2;
  EXPECT_GT(e.hbm_read.value(), weights);
  EXPECT_LT(e.hbm_read.value(), weights + weights / 20);
  EXPECT_LT(e.hbm_read.value(), all * 3 * F * D * 2 * 8 / 10);
}

// Groups whose rows end within a tile load their weights once more than full ones.
TEST(RaggedGroups, AskForWeightsOnceARowOfTiles) {
  const auto weight_bytes = [](const RaggedRows& rows) {
    const Plan plan = make_plan("unfused", experts(rows, 2, 64, 64));
    for (const RequestedBytes& r :
         requested_bytes(plan.graph, plan.kernels[0].phases[0], TileShape{128, 128}))
      if (plan.graph.tensor(r.tensor).name == "w_up") return r.loaded.value();
    return std::int64_t{0};
  };
  const std::int64_t matrix = 2 * 64 * 64 * 2;
  EXPECT_EQ(weight_bytes({{128, 128}}), 2 * matrix);
  EXPECT_EQ(weight_bytes({{129, 127}}), 3 * matrix);
  EXPECT_EQ(weight_bytes({{1, 255}}), 3 * matrix);
}

TEST(RaggedGroups, RefuseLengthsThatDoNotFit) {
  Plan plan = make_plan("unfused", experts({{3, 5}}, 2, 16, 16));
  Program& program = plan.kernels[0].phases[0];
  auto& m = std::get<GemmMainloop>(program.mainloop);
  m.groups = {3, 4};
  std::vector<std::string> problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "up: groups of 7 rows, the product has 8");
  m.groups = {8, 0};
  problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "up: a group of 0 rows");
  m.groups = {8};
  problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "up: operand b = w_up is [64, 16], not [32, 16]");
}

// Every row goes to one expert of many with equal probability.
TEST(AssumedRows, AreWhatEvenRoutingGives) {
  std::mt19937 random(9);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t rows = pick(random, 1, 5000);
    const std::int64_t all = pick(random, 1, 256);
    const RaggedRows assumed = assumed_rows(rows, all);
    EXPECT_TRUE(assumed.assumed);
    EXPECT_EQ(std::accumulate(assumed.groups.begin(), assumed.groups.end(), std::int64_t{0}), rows);
    for (const std::int64_t count : assumed.groups) EXPECT_GT(count, 0);
    const double n = static_cast<double>(rows), e = static_cast<double>(all);
    const double active = e * (1 - std::pow(1 - 1 / e, n));
    EXPECT_NEAR(static_cast<double>(std::ssize(assumed.groups)), active, 0.5 + 1e-9);
  }
  // 128 rows with one of 128 experts each meet 81 of them (arithmetic by hand: 128·(1 -
  // (127/128)^128) = 81.1), the busiest of them four or five.
  const RaggedRows typical = assumed_rows(128, 128);
  EXPECT_EQ(std::ssize(typical.groups), 81);
  EXPECT_GE(typical.groups.front(), 4);
  EXPECT_LE(typical.groups.front(), 5);
}

// Every token goes to several different experts: an expert has it once at most.
TEST(AssumedRows, OfSeveralExpertsEachAreDifferentOnes) {
  std::mt19937 random(10);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t rows = round % 5 == 0 ? 1 : pick(random, 1, 3000);
    const std::int64_t all = pick(random, 1, 256);
    const std::int64_t each = pick(random, 1, std::min<std::int64_t>(all, 9));
    const RaggedRows assumed = assumed_rows(rows, all, each);
    EXPECT_EQ(std::accumulate(assumed.groups.begin(), assumed.groups.end(), std::int64_t{0}),
              rows * each);
    for (const std::int64_t count : assumed.groups) {
      EXPECT_GT(count, 0);
      EXPECT_LE(count, rows);
    }
    const double active = static_cast<double>(all) *
                          (1 - std::pow(1 - static_cast<double>(each) / static_cast<double>(all),
                                        static_cast<double>(rows)));
    EXPECT_NEAR(static_cast<double>(std::ssize(assumed.groups)), active, 0.5 + 1e-9);
    // The pattern gives every row its experts, all different, and every expert its rows.
    const ExpertChoice choice{.count = each, .loads = assumed};
    std::vector<std::int64_t> counts(assumed.groups.size());
    for (std::int64_t m = 0; m < rows; ++m) {
      const RoutedRow row = route_row(choice, m, all, [](std::int64_t) { return 0.0; });
      EXPECT_EQ(std::set<std::int64_t>(row.experts.begin(), row.experts.end()).size(),
                static_cast<std::size_t>(each));
      for (const std::int64_t e : row.experts) ++counts[static_cast<std::size_t>(e)];
    }
    EXPECT_EQ(counts, assumed.groups);
  }
  // 16 tokens with 8 of 128 experts each meet 128·(1 - (120/128)^16) = 82.4.
  EXPECT_EQ(std::ssize(assumed_rows(16, 128, 8).groups), 82);
  EXPECT_EQ(assumed_rows(1, 8, 2).groups, (std::vector<std::int64_t>{1, 1}));
}

// Without loads the scores decide, and gates are what the formula says.
TEST(RouteRow, TakesTheLargestScores) {
  const std::vector<double> scores{0.5, -1.0, 2.0, 2.0, 1.0};
  const auto score = [&](std::int64_t e) { return scores[static_cast<std::size_t>(e)]; };
  const RoutedRow row = route_row({.count = 3}, 7, 5, score);
  EXPECT_EQ(row.experts, (std::vector<std::int64_t>{2, 3, 4}));
  const double sum = 2 * std::exp(2.0) + std::exp(1.0);
  EXPECT_NEAR(row.gates[0], std::exp(2.0) / sum, 1e-12);
  EXPECT_NEAR(row.gates[2], std::exp(1.0) / sum, 1e-12);
  const double all = sum + std::exp(0.5) + std::exp(-1.0);
  const RoutedRow of_all =
      route_row({.count = 3, .weights = GateWeights::softmax_of_all}, 7, 5, score);
  EXPECT_NEAR(of_all.gates[2], std::exp(1.0) / all, 1e-12);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const RoutedRow sigmoids =
      route_row({.count = 2, .weights = GateWeights::sigmoid, .factor = 2.5}, 7, 5, score);
  EXPECT_NEAR(sigmoids.gates[1], 2.5 * sigmoid(2) / (2 * sigmoid(2)), 1e-12);
}

}  // namespace
}  // namespace fuseline
