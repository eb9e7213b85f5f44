// AdaLN, as in DiT and SD3: a condition gives every sequence a scale and a shift behind each norm,
// which has no weight of its own, and a gate for each branch.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "tests/model/tiny_models.h"
#include "tests/sim/open_blocks.h"

namespace fuseline {
namespace {

using test::BlockByHand;
using test::BlockSizes;
using test::expect_block_proved;
using test::expect_block_trained;
using test::expect_proved;
using test::modulated_block;
using test::pick;

const Kernel& modulated_kernel(const Plan& plan, const std::string& op) {
  const OpId id = plan.graph.find_op(op).value();
  return *std::ranges::find_if(
      plan.kernels, [&](const Kernel& k) { return std::ranges::find(k.ops, id) != k.ops.end(); });
}

TEST(ModulatedBlock, IsProvedUnderEveryPolicy) {
  for (const bool centred : {true, false})
    expect_block_proved(modulated_block({}, centred), centred ? "centred" : "root mean square");
}

TEST(ModulatedBlock, IsProvedForRandomSizes) {
  std::mt19937 random(11);
  for (int round = 0; round < 10; ++round) {
    BlockSizes s;
    s.batch = pick(random, 1, 4);
    s.tokens = pick(random, 1, 150);
    s.model = pick(random, 3, 140);
    s.inner = pick(random, 3, 150);
    s.kv_heads = s.heads = pick(random, 1, 4);
    s.width = pick(random, 1, 30);
    const std::string policy = executor::all_policies()[static_cast<std::size_t>(round)];
    expect_proved(make_plan(policy, modulated_block(s, round % 2 == 0)),
                  policy + " round " + std::to_string(round));
  }
}

TEST(ModulatedBlock, IsTrainedUnderEveryPolicy) {
  for (const bool centred : {true, false})
    expect_block_trained(modulated_block({}, centred), centred ? "centred" : "root mean square");
}

using test::training_policies;

// Without attention, whose single token would have no gradients of Q and K: sequences of one token
// have as many rows as their sums.
TEST(Modulation, IsTrainedForSequencesOfAnyLength) {
  for (const Sequences rows :
       {Sequences{3, 1}, Sequences{1, 1}, Sequences{1, 300}, Sequences{3, 7}})
    for (const std::string& policy : training_policies()) {
      test::GraphByHand b;
      const auto vectors = [&](const char* name) {
        return b.tensor(name, Role::input, rows.batch, 70);
      };
      const std::int64_t count = rows.batch * rows.tokens;
      const Operand x = b.tensor("x", Role::input, count, 70);
      const Operand m = b.tensor("m", Role::activation, count, 70);
      const Operand y = b.tensor("y", Role::output, count, 70);
      b.op("modulate", operators::modulate, {x, vectors("scale"), vectors("shift")}, {m}, rows);
      b.op("gate", operators::gate_add, {x, m, vectors("gate")}, {y}, rows);
      expect_proved(make_plan(policy, differentiate(b.graph)),
                    policy + ", " + std::to_string(rows.tokens) + " tokens");
    }
}

TEST(ModulatedBlock, IsTrainedForRandomSizes) {
  std::mt19937 random(17);
  const std::vector<std::string> trains = training_policies();
  for (std::size_t round = 0; round < 2 * trains.size(); ++round) {
    BlockSizes s;
    s.batch = pick(random, 1, 4);
    s.tokens = pick(random, 2, 150);
    s.model = pick(random, 3, 300);
    s.inner = pick(random, 3, 60);
    s.kv_heads = s.heads = pick(random, 1, 3);
    s.width = pick(random, 2, 20);
    const std::string& policy = trains[round % trains.size()];
    expect_proved(make_plan(policy, differentiate(modulated_block(s, round % 2 == 0))),
                  policy + " round " + std::to_string(round));
  }
}

// What a framework's reverse mode launches for the gradients of one modulation: the products with
// the normalised rows, two sums over the rows of sequences, and the rows times 1 + scale. A
// compiler of loops needs no product of its own.
TEST(ModulatedBlock, SumsTheGradientsOfASequence) {
  const Plan eager = make_plan("eager", differentiate(modulated_block({}, true)));
  for (const char* op :
       {"ds_modulate1_mul_mul", "ds_modulate1_mul", "ds_modulate1_add", "d_modulate1_mul"})
    EXPECT_EQ(modulated_kernel(eager, op).ops.size(), 1U) << op;
  const Plan compiled = make_plan("torch-compile", differentiate(modulated_block({}, true)));
  EXPECT_FALSE(compiled.graph.find_op("dscale_modulate1_mul").has_value());
  EXPECT_TRUE(compiled.graph.find_op("dscale_modulate1").has_value());
}

// PyTorch 2.11: (1 + scale), times, plus; gate times branch, plus stream. Inductor: a norm with its
// modulation, and a gated sum, are one kernel each. coda: the gate is behind the product.
TEST(ModulatedBlock, IsLaunchedAsFrameworksDo) {
  const Plan eager = make_plan("eager", modulated_block({}, true));
  for (const char* op :
       {"modulate1_one", "modulate1_mul", "modulate1_add", "gate1_mul", "gate1_add"})
    EXPECT_EQ(modulated_kernel(eager, op).ops.size(), 1U) << op;
  const Plan compiled = make_plan("torch-compile", modulated_block({}, true));
  EXPECT_EQ(&modulated_kernel(compiled, "norm1"), &modulated_kernel(compiled, "modulate1"));
  EXPECT_EQ(&modulated_kernel(compiled, "norm2"), &modulated_kernel(compiled, "gate1"));
  const Plan coda = make_plan("coda", modulated_block({}, true));
  EXPECT_EQ(&modulated_kernel(coda, "gate1"), &modulated_kernel(coda, "oproj"));
  EXPECT_EQ(&modulated_kernel(coda, "gate2"), &modulated_kernel(coda, "down"));
}

// A vector of another sequence is another result.
TEST(ModulatedBlock, SequencesHaveTheirOwnVectors) {
  test::GraphByHand b;
  const Operand x = b.tensor("x", Role::input, 6, 4);
  const Operand scale = b.tensor("scale", Role::input, 2, 4);
  const Operand shift = b.tensor("shift", Role::input, 2, 4);
  const Operand y = b.tensor("y", Role::output, 6, 4);
  b.op("modulate", operators::modulate, {x, scale, shift}, {y}, Sequences{.batch = 2, .tokens = 3});
  NamedTensors in{{"x", std::vector<double>(24, 1.0)},
                  {"scale", {0, 0, 0, 0, 1, 1, 1, 1}},
                  {"shift", {0, 1, 2, 3, 4, 5, 6, 7}}};
  const TensorValues out = run_reference(b.graph, in);
  EXPECT_EQ(out.at("y"), (std::vector<double>{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4,  //
                                              6, 7, 8, 9, 6, 7, 8, 9, 6, 7, 8, 9}));
}

Graph normalised_mlp(bool centred) {
  BlockByHand b({});
  const Operand x = b.tensor("x", Role::input, b.s.rows(), b.s.model);
  const Operand xn = b.one("norm", operators::normalise, {x}, b.s.model,
                           Normalise{.eps = 1e-5, .centred = centred});
  b.residual("y", x, b.linear("up", xn, b.s.model), true);
  return b.graph;
}

TEST(Normalise, IsTrained) {
  for (const bool centred : {true, false})
    expect_block_trained(normalised_mlp(centred), centred ? "centred" : "root mean square");
}

}  // namespace
}  // namespace fuseline
