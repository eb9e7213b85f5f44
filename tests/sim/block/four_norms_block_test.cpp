// Gemma 2: norms before and behind each branch, GeGLU, attention with capped scores in a window,
// and logits that are capped.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/model/tiny_models.h"
#include "tests/sim/open_blocks.h"

namespace fuseline {
namespace {

using test::BlockSizes;
using test::expect_block_proved;
using test::expect_block_trained;
using test::expect_proved;
using test::gemma2_like;
using test::pick;

TEST(FourNormsBlock, IsProvedUnderEveryPolicy) { expect_block_proved(gemma2_like({}, 5), ""); }

TEST(FourNormsBlock, IsTrained) { expect_block_trained(gemma2_like({}, 0), ""); }

TEST(FourNormsBlock, IsProvedForRandomSizes) {
  std::mt19937 random(9);
  for (int round = 0; round < 10; ++round) {
    BlockSizes s;
    s.batch = pick(random, 1, 3);
    s.tokens = pick(random, 1, 150);
    s.model = pick(random, 3, 140);
    s.inner = pick(random, 3, 150);
    s.kv_heads = pick(random, 1, 3);
    s.heads = s.kv_heads * pick(random, 1, 3);
    s.width = 2 * pick(random, 1, 20);
    const std::string policy = executor::all_policies()[static_cast<std::size_t>(round)];
    expect_proved(make_plan(policy, gemma2_like(s, 3)), policy + " round " + std::to_string(round));
  }
}

// GeGLU is fused and taken apart wherever SwiGLU is.
TEST(FourNormsBlock, GegluIsPlannedAsSwigluIs) {
  const auto launches = [](const std::string& policy, OpKind activation) {
    Graph graph = gemma2_like({}, 5);
    graph.op(graph.find_op("geglu").value()).kind = activation;
    const Plan plan = make_plan(policy, graph);
    return std::pair(plan.kernels.size(), plan.rewrites.size());
  };
  for (const std::string& policy : executor::all_policies())
    EXPECT_EQ(launches(policy, operators::geglu), launches(policy, operators::swiglu)) << policy;
  const Plan coda = make_plan("coda", gemma2_like({}, 5));
  const OpId geglu = coda.graph.find_op("geglu").value();
  EXPECT_TRUE(std::ranges::any_of(coda.kernels, [&](const Kernel& k) {
    return k.kind == KernelKind::gemm && std::ranges::find(k.ops, geglu) != k.ops.end();
  }));
}

Graph capped_logits(std::int64_t rows, std::int64_t model, std::int64_t words) {
  test::GraphByHand b;
  const Operand x = b.tensor("x", Role::input, rows, model);
  const Operand w = b.tensor("w", Role::weight, words, model);
  const Operand raw = b.tensor("raw", Role::activation, rows, words);
  const Operand logits = b.tensor("logits", Role::output, rows, words);
  b.op("head", operators::gemm, {x, w}, {raw});
  b.op("cap", operators::softcap, {raw}, {logits}, Scalar{2.0});
  return b.graph;
}

TEST(CappedLogits, AreProvedUnderEveryPolicyAndTrained) {
  expect_block_proved(capped_logits(45, 37, 301), "logits");
  expect_block_trained(capped_logits(45, 37, 301), "logits");
}

// Every activation behind a product, and its gradient.
TEST(Activations, AreProvedUnderEveryPolicyAndTrained) {
  for (const OpKind kind : {OpKind(operators::gelu_erf), OpKind(operators::relu),
                            OpKind(operators::softplus), OpKind(operators::silu)}) {
    test::GraphByHand b;
    const Operand x = b.tensor("x", Role::input, 45, 37);
    const Operand up = b.tensor("up", Role::activation, 45, 130);
    const Operand act = b.tensor("act", Role::activation, 45, 130);
    b.op("up", operators::gemm, {x, b.tensor("w_up", Role::weight, 130, 37)}, {up});
    b.op("act", kind, {up}, {act});
    b.op("down", operators::gemm, {act, b.tensor("w_down", Role::weight, 37, 130)},
         {b.tensor("y", Role::output, 45, 37)});
    expect_block_proved(b.graph, name_of(kind));
    expect_block_trained(b.graph, name_of(kind));
  }
}

}  // namespace
}  // namespace fuseline
