#include "model/lower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "tests/model/plan_support.h"
#include "tests/support/rounds.h"

namespace fuseline {
namespace {

using ::testing::IsEmpty;

std::vector<OpId> ops(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<OpId> ids;
  for (const std::string& name : names) ids.push_back(*graph.find_op(name));
  return ids;
}

TEST(Lower, AGemmAloneStoresAllThatOthersRead) {
  const Graph graph = build_block(test::tiny_llama(), test::forward(2, 5));
  const Program p = lower(graph, "qkv", ops(graph, {"qkv"}));
  const auto& m = std::get<GemmMainloop>(p.mainloop);
  EXPECT_EQ(m.M, 10);
  EXPECT_EQ(m.N, 48);  // (4 + 2·2)·6
  EXPECT_EQ(m.K, 20);
  ASSERT_EQ(stores(p).size(), 1u);
  EXPECT_EQ(stores(p)[0].cols, 48);
}

TEST(Lower, StoresOnlyTheColumnsThatOtherKernelsRead) {
  // Given both RoPEs in one kernel with the reading of qkv, then only V's slice is still wanted.
  const Graph graph = build_block(test::tiny_llama(), test::forward(1, 5));
  const Program p = lower(graph, "rope", ops(graph, {"rope_q", "rope_k"}));
  std::int64_t loaded = 0;
  for (const Operand& o : loads(p))
    if (graph.tensor(o.tensor).name == "qkv") loaded += o.cols;
  EXPECT_EQ(loaded, 36);
}

TEST(Lower, LoadsAnOperandOnceForSeveralOperators) {
  const Graph graph = build_block(test::tiny_llama(), test::forward(1, 5));
  const Program p = lower(graph, "rope", ops(graph, {"rope_q", "rope_k"}));
  int tables = 0;
  for (const Primitive& primitive : p.body) tables += primitive.is<LoadTable>();
  EXPECT_EQ(tables, 2);  // cos and sin, not twice each
}

TEST(Lower, AttentionOfUnfusedIsAGemmForEachHead) {
  const Graph graph = build_block(test::tiny_llama(), test::decode(3, 2, 7));
  const auto scores = std::get<GemmMainloop>(lower(graph, "s", ops(graph, {"scores"})).mainloop);
  EXPECT_EQ(scores.batch, 12);  // B·H
  EXPECT_EQ(scores.M, 2);
  EXPECT_EQ(scores.N, 7);
  EXPECT_EQ(scores.K, 6);
  const auto context = std::get<GemmMainloop>(lower(graph, "c", ops(graph, {"context"})).mainloop);
  EXPECT_TRUE(context.b_is_kn);
  EXPECT_EQ(context.N, 6);
  EXPECT_EQ(context.K, 7);
}

TEST(Lower, SoftmaxMasksOnlyWhereTheAttentionIsCausal) {
  const auto masks = [](const Workload& work) {
    const Graph graph = build_block(test::tiny_llama(), work);
    int count = 0;
    for (const Primitive& p : lower(graph, "s", ops(graph, {"softmax"})).body)
      count += p.is<Mask>();
    return count;
  };
  EXPECT_EQ(masks(test::forward(1, 5)), 1);
  EXPECT_EQ(masks(test::decode(1, 1, 5)), 0);
}

TEST(Lower, RefusesTwoMainloops) {
  const Graph graph = build_block(test::tiny_llama(), test::forward(1, 5));
  EXPECT_THROW(static_cast<void>(lower(graph, "k", ops(graph, {"gate_up", "down"}))),
               InternalError);
}

TEST(Lower, LoadsAndStoresOfEveryOperatorAloneAreItsOperands) {
  // Property: a kernel of one operator moves exactly the operator's distinct operand bytes.
  std::mt19937 random(3);
  for (int i = 0; i < 80; ++i) {
    const test::RandomBlock b = test::random_block(random);
    SCOPED_TRACE(test::describe(b));
    const Graph blocks[] = {build_block(b.config, b.work),
                            make_plan("composed", b.config, b.work).graph,
                            make_plan("coda", b.config, b.work).graph};
    for (const Graph& graph : blocks) {
      for (const OpId id : topological_order(graph)) {
        const Op& op = graph.op(id);
        const Program p = lower(graph, op.name, {id});
        EXPECT_EQ(distinct_bytes(graph, stores(p)), bytes_written(graph, op)) << op.name;
        EXPECT_EQ(distinct_bytes(graph, loads(p)), bytes_read(graph, op)) << op.name;
        const bool pairs_of_a_gemm_alone = has_adjacent_pairs(op);
        if (!pairs_of_a_gemm_alone) {
          EXPECT_THAT(check_program(graph, p), IsEmpty()) << op.name;
        }
      }
    }
  }
}

TEST(Lower, SoDoThoseOfEveryOperatorOfTheBackwardPass) {
  std::mt19937 random(31);
  for (int i = 0; i < test::rounds(60); ++i) {
    const test::RandomBlock b = test::random_training_block(random);
    SCOPED_TRACE(test::describe(b));
    for (const std::string& policy : test::training_policies()) {
      const Graph graph = make_plan(policy, b.config, b.work).graph;
      for (const OpId id : topological_order(graph)) {
        const Op& op = graph.op(id);
        const Program p = lower(graph, op.name, {id});
        EXPECT_EQ(distinct_bytes(graph, stores(p)), bytes_written(graph, op)) << op.name;
        EXPECT_EQ(distinct_bytes(graph, loads(p)), bytes_read(graph, op)) << op.name;
        const bool pairs_of_a_gemm_alone = has_adjacent_pairs(op);
        if (!pairs_of_a_gemm_alone) {
          EXPECT_THAT(check_program(graph, p), IsEmpty()) << op.name;
        }
      }
    }
  }
}

TEST(Lower, GradientsOfAGemmReadItsOperandsAsTheyLie) {
  const Graph graph = build_block(test::tiny_llama(), test::train(2, 5));
  const auto input = std::get<GemmMainloop>(lower(graph, "d", ops(graph, {"d_down"})).mainloop);
  EXPECT_FALSE(input.a_is_km);
  EXPECT_TRUE(input.b_is_kn);
  EXPECT_EQ(input.M, 10);
  EXPECT_EQ(input.N, 14);
  EXPECT_EQ(input.K, 20);
  const auto weight = std::get<GemmMainloop>(lower(graph, "d", ops(graph, {"dw_down"})).mainloop);
  EXPECT_TRUE(weight.a_is_km && weight.b_is_kn);
  EXPECT_EQ(weight.M, 20);
  EXPECT_EQ(weight.N, 14);
  EXPECT_EQ(weight.K, 10);
}

TEST(Lower, GradientsOfSharedKeysAddUpOverTheQueryHeads) {
  const Graph graph = build_block(test::tiny_llama(), test::train(3, 5));  // 4 heads over 2
  const auto dk = std::get<GemmMainloop>(lower(graph, "d", ops(graph, {"d_k"})).mainloop);
  EXPECT_EQ(dk.batch, 12);
  EXPECT_EQ(dk.summed, 2);
  const auto dq = std::get<GemmMainloop>(lower(graph, "d", ops(graph, {"d_q"})).mainloop);
  EXPECT_EQ(dq.summed, 1);
}

TEST(Lower, AttentionsGradientIsOneMainloopOfThreeResults) {
  const Plan plan = make_plan("flash-attention", test::tiny_llama(), test::train(2, 5));
  const Program& p = test::find_kernel(plan, "d_attention")->phases[0];
  const auto& m = std::get<AttentionMainloop>(p.mainloop);
  ASSERT_TRUE(m.gradient.has_value());
  EXPECT_FALSE(m.gradient->per_query_head);
  EXPECT_EQ(plan.graph.tensor(m.gradient->delta.tensor).name, "delta");
  EXPECT_EQ(stores(p).size(), 3u);
  EXPECT_EQ(loads(p).size(), 6u);  // q, k, v, dy, log-sum-exp, delta
  const auto& forward =
      std::get<AttentionMainloop>(test::find_kernel(plan, "attention")->phases[0].mainloop);
  EXPECT_GE(forward.log_sum_exp, 0);
  const Program& dot = test::find_kernel(plan, "d_dot")->phases[0];
  EXPECT_EQ(std::get<RowMainloop>(dot.mainloop).heads, 4);
}

TEST(Lower, ComputesAnEqualMapOnce) {
  // Given three operators that need the normalised row, then it is computed once.
  const Plan plan = make_plan("coda", test::tiny_llama(), test::train(2, 5));
  int scaled = 0;
  for (const Primitive& p : test::find_kernel(plan, "d_gate_up")->phases[0].body)
    if (const auto* load = p.as<LoadVector>())
      scaled += plan.graph.tensor(load->from.tensor).name == "norm2_stats";
  EXPECT_EQ(scaled, 1);
  const std::string text =
      print_program(plan.graph, test::find_kernel(plan, "d_gate_up")->phases[0]);
  EXPECT_EQ(text.find("z1 ="), std::string::npos) << text;
}

}  // namespace
}  // namespace fuseline
