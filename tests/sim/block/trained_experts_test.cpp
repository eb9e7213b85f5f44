// Experts in training: gradients of rows in groups, of the matrices that they meet, of routing.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>

#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/blocks/block_text.h"
#include "model/operators/all_operators.h"
#include "model/ragged_rows.h"
#include "sim/memory/traffic.h"
#include "tests/model/plan_support.h"
#include "tests/model/small_experts.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/experts_by_hand.h"

namespace fuseline {
namespace {

using test::expect_proved;
using test::experts;
using test::GraphByHand;
using test::pick;
using test::Proof;
using test::training_policies;

TEST(TrainedExperts, AreProvedUnderEveryPolicy) {
  const RaggedRows rows{{3, 130, 1, 64, 17}};
  const Graph block = differentiate(experts(rows, 7, 24, 20));
  const Proof proof(block);
  for (const std::string& policy : training_policies()) proof.of(make_plan(policy, block), policy);
}

TEST(TrainedExperts, AreProvedForRandomLengths) {
  std::mt19937 random(6);
  const std::vector<std::string> names = training_policies();
  for (std::size_t round = 0; round < 16; ++round) {
    RaggedRows rows;
    for (std::int64_t g = pick(random, 1, 6); g > 0; --g)
      rows.groups.push_back(round % 4 == 0 ? pick(random, 1, 3) : pick(random, 1, 300));
    const std::int64_t all = std::ssize(rows.groups) + pick(random, 0, 3);
    const Graph forward = experts(rows, all, pick(random, 1, 90), pick(random, 1, 90));
    const std::string& policy = names[round % names.size()];
    expect_proved(make_plan(policy, differentiate(forward)),
                  policy + " round " + std::to_string(round));
  }
}

// Rows to several of the experts and back, with gates: E experts, of which some get no rows.
Graph routed(std::int64_t M, std::int64_t D, std::int64_t E, const ExpertChoice& choice) {
  GraphByHand b;
  const std::int64_t k = choice.count;
  const Operand x = b.tensor("x", Role::input, M, D);
  const Operand scores = b.tensor("scores", Role::activation, M, E);
  const Operand gates = b.tensor("gates", Role::activation, M, k);
  const Operand chosen = b.tensor("chosen", Role::activation, M, k);
  const Operand order = b.tensor("order", Role::activation, M * k, 1);
  for (const Operand& o : {gates, chosen, order}) b.graph.tensor(o.tensor).dtype = Dtype::fp32;
  const Operand rows = b.tensor("rows", Role::activation, M * k, D);
  const Operand made = b.tensor("made", Role::activation, M * k, D);
  const Operand gate = b.tensor("gate", Role::activation, M * k, 1);
  const Operand weighed = b.tensor("weighed", Role::activation, M * k, D);
  const Operand y = b.tensor("y", Role::output, M, D);
  const Operand w = b.tensor("w", Role::weight, E * D, D, {E, D});
  const std::int64_t active = std::ssize(choice.loads.groups);
  b.op("router", operators::gemm, {x, b.tensor("w_router", Role::weight, E, D)}, {scores});
  b.op("choose", operators::choose_experts, {scores}, {gates, chosen}, choice);
  b.op("sort", operators::sort_places, {chosen}, {order});
  b.op("permute", operators::take_rows, {x, order}, {rows}, Places{k});
  b.op("expert", operators::grouped_gemm, {rows, b.graph.rows(w.tensor, 0, active * D)}, {made},
       choice.loads);
  b.op("gates_of_rows", operators::take_numbers, {gates, order}, {gate});
  b.op("weigh", operators::mul_rows, {made, gate}, {weighed});
  b.op("sum", operators::sum_rows, {weighed, order}, {y}, Places{k});
  return b.graph;
}

TEST(TrainedExperts, AreProvedWithTheirRouting) {
  std::mt19937 random(8);
  const std::vector<std::string> names = training_policies();
  const GateWeights weights[] = {GateWeights::softmax, GateWeights::softmax_of_all,
                                 GateWeights::sigmoid};
  for (std::size_t round = 0; round < 18; ++round) {
    const std::int64_t M = round == 0 ? 1 : pick(random, 1, 200);
    const std::int64_t E = pick(random, 2, 12);
    ExpertChoice choice{.count = pick(random, 2, std::min<std::int64_t>(E, 4))};
    choice.weights = weights[round % 3];
    choice.factor = round % 2 == 0 ? 1 : 2.5;
    choice.loads = assumed_rows(M, E, choice.count);
    const std::string& policy = names[round % names.size()];
    expect_proved(make_plan(policy, differentiate(routed(M, pick(random, 2, 70), E, choice))),
                  policy + " round " + std::to_string(round));
  }
}

// Every matrix has a gradient in memory; of experts without rows it is zeros.
TEST(TrainedExperts, LeaveZerosForExpertsWithoutRows) {
  const std::int64_t D = 24, F = 20;
  const Graph joint = differentiate(experts({{3, 5}}, 4, D, F));
  for (const std::string& policy : training_policies()) {
    const Plan plan = make_plan(policy, joint);
    const executor::Execution run = executor::execute(
        plan, executor::prepare_inputs(plan, executor::random_storage(plan.block, 3, {}), 3, {}),
        executor::executor_gpu(), {});
    const TensorId dw = plan.graph.find_tensor("dw_down").value();
    const std::vector<double> values = executor::to_doubles(run.memory->at(dw));
    ASSERT_EQ(std::ssize(values), 4 * D * F);
    const auto middle = values.begin() + 2 * D * F;
    EXPECT_TRUE(std::ranges::any_of(values.begin(), middle, [](double v) { return v != 0; }))
        << policy;
    EXPECT_TRUE(std::ranges::all_of(middle, values.end(), [](double v) { return v == 0; }))
        << policy;
  }
}

const Kernel& experts_kernel(const Plan& plan, const std::string& op) {
  for (const Kernel& kernel : plan.kernels)
    for (const OpId id : kernel.ops)
      if (plan.graph.op(id).name == op) return kernel;
  throw std::out_of_range(op);
}

// However the rows are shared out, each of dy and x is read once for every tile across it, and
// every matrix is written.
TEST(TrainedExperts, AskForEveryRowInItsGroupOnly) {
  const auto requested = [](const RaggedRows& rows, const char* name) {
    const Plan plan = make_plan("unfused", differentiate(experts(rows, 3, 192, 64)));
    const Kernel& kernel = experts_kernel(plan, "dw_up");
    for (const RequestedBytes& r :
         requested_bytes(plan.graph, kernel.phases[0], TileShape{128, 128}))
      if (plan.graph.tensor(r.tensor).name == name) return (r.loaded + r.stored).value();
    return std::int64_t{-1};
  };
  // dgu [M, 128] meets two tiles of the 192 columns of x, and x one tile of its 128.
  for (const RaggedRows& rows : {RaggedRows{{8, 8}}, RaggedRows{{15, 1}}, RaggedRows{{16}}}) {
    EXPECT_EQ(requested(rows, "dgu"), 16 * 128 * 2 * 2);
    EXPECT_EQ(requested(rows, "x"), 16 * 192 * 2);
    EXPECT_EQ(requested(rows, "dw_up"), 3 * 128 * 192 * 2);
  }
}

// One group is a product as any other.
TEST(TrainedExperts, InOneGroupAreAGemm) {
  GraphByHand plain;
  const Operand dy = plain.tensor("dy", Role::input, 300, 1024);
  const Operand x = plain.tensor("x", Role::input, 300, 512);
  const Operand dw = plain.tensor("dw", Role::output, 1024, 512);
  GraphByHand grouped = plain;
  plain.op("dw", operators::gemm, {dy, x}, {dw}, GemmLayout{.a_is_km = true, .b_is_kn = true});
  grouped.op("dw", operators::grouped_weight_grad, {dy, x}, {dw}, RaggedSums{{300}});
  const Gpu a100 = load_gpu("a100");
  for (const char* policy : {"unfused", "eager"}) {
    const PlanEstimate a = simulate(make_plan(policy, plain.graph), a100, Fidelity::hierarchy);
    const PlanEstimate b = simulate(make_plan(policy, grouped.graph), a100, Fidelity::hierarchy);
    EXPECT_EQ(a.flops, b.flops) << policy;
    EXPECT_EQ(a.hbm_read + a.hbm_write, b.hbm_read + b.hbm_write) << policy;
  }
  expect_proved(make_plan("eager", grouped.graph), "one group");
}

// Products of fewer rows take less time, and two groups' no less than they need together.
TEST(TrainedExperts, TakeTimeByTheirRows) {
  const auto time = [](const std::vector<std::int64_t>& groups) {
    GraphByHand b;
    const std::int64_t M = std::accumulate(groups.begin(), groups.end(), std::int64_t{0});
    const Operand dy = b.tensor("dy", Role::input, M, 4096);
    const Operand x = b.tensor("x", Role::input, M, 2048);
    const Operand dw = b.tensor("dw", Role::output, std::ssize(groups) * 4096, 2048);
    b.op("dw", operators::grouped_weight_grad, {dy, x}, {dw}, RaggedSums{groups});
    return simulate(make_plan("coda", b.graph), load_gpu("h200"), Fidelity::hierarchy).time.value();
  };
  EXPECT_LT(time({1024, 1024, 0}), time({1024, 1024, 1024}));
  EXPECT_LT(time({1024, 1024, 0}), 1.1 * time({2048, 0, 0}));
  EXPECT_GT(time({4096, 4096}), 1.8 * time({2048, 2048}) * 0.9);
}

// Blocks from their text: experts behind attention that shares keys, and behind latent attention,
// with and without experts that all tokens see.
TEST(TrainedExperts, OfBlocksAreProvedForRandomSizes) {
  std::mt19937 random(12);
  const std::vector<std::string> names = training_policies();
  for (std::size_t round = 0; round < 2 * names.size(); ++round) {
    const bool latent = round >= names.size();
    ModelConfig c = latent ? test::small_latent_experts() : test::small_experts();
    c.D = 4 * pick(random, 2, 30);
    c.F = 4 * pick(random, 1, 30);
    c.d = 2 * pick(random, 2, 12);
    c.Hkv = pick(random, 1, 2);
    c.H = c.Hkv * pick(random, 1, 3);
    ParameterValues& own = latent ? c.blocks.front().values : c.values;
    const std::int64_t E = pick(random, 3, 9);
    own["E"] = E;
    own["k"] = pick(random, 2, E);
    if (latent) {
      c.values["dn"] = 2 * pick(random, 1, 12);
      c.values["dr"] = 2 * pick(random, 1, 8);
      c.values["dv"] = 2 * pick(random, 1, 16);
      c.values["rkv"] = 4 * pick(random, 1, 12);
    }
    const Workload work = test::train(pick(random, 1, 3), pick(random, 1, 40));
    const std::string& policy = names[round % names.size()];
    expect_proved(make_plan(policy, build_block(c, work)),
                  policy + (latent ? " latent" : "") + " round " + std::to_string(round));
  }
}

TEST(TrainedExperts, RefuseDepthsThatDoNotFit) {
  Plan plan = make_plan("unfused", differentiate(experts({{3, 5}}, 2, 16, 16)));
  const auto at = std::ranges::find_if(
      plan.kernels, [&](const Kernel& k) { return k.name == experts_kernel(plan, "dw_up").name; });
  Program& program = at->phases[0];
  auto& m = std::get<GemmMainloop>(program.mainloop);
  m.depths = {3, 4};
  std::vector<std::string> problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "dw_up: products of 7 rows, the operands have 8");
  m.depths = {9, -1};
  problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0], "dw_up: a product that sums -1 rows");
  m.depths = {8};
  problems = check_program(plan.graph, program);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("are no batch"), std::string::npos) << problems[0];
}

}  // namespace
}  // namespace fuseline
