// Joint forward and backward graphs of whole blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/backward.h"
#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/tiny_models.h"
#include "tests/support/graph_names.h"

namespace fuseline {
namespace {

using Names = std::vector<std::string>;

using test::train;

using test::op;
using test::tensor;

Names backward_names(const Graph& g) {
  Names names;
  for (const Op& o : g.ops())
    if (o.pass == Pass::backward) names.push_back(o.name);
  return names;
}

TEST(TrainBlock, OfLlamaHasTheBackwardOperatorsInOrder) {
  const Graph g = build_block(test::llama2_7b(), train(1, 2048));
  EXPECT_EQ(backward_names(g),
            (Names{"dw_down",   "d_down",  "d_swiglu", "dw_gate_up", "d_gate_up", "d_norm2",
                   "dw_norm2",  "add_dh",  "dw_oproj", "d_oproj",    "d_v",       "d_probs",
                   "d_softmax", "d_q",     "d_k",      "d_rope_k",   "d_rope_q",  "dw_qkv",
                   "d_qkv",     "d_norm1", "dw_norm1", "add_dx"}));
  EXPECT_EQ(op(g, "d_down").site, "down_bwd");
  EXPECT_EQ(op(g, "d_rope_q").site, "rope_bwd");
  EXPECT_EQ(op(g, "norm1").pass, Pass::forward);
}

TEST(TrainBlock, OfGptHasTheGradientsOfItsBiases) {
  const Graph g = build_block(test::gpt2_xl(), train(1, 1024));
  for (const char* name : {"db_qkv", "db_oproj", "db_up", "db_down", "db_norm1", "db_norm2"}) {
    EXPECT_EQ(op(g, name).kind, operators::column_sum) << name;
    EXPECT_EQ(op(g, name).writes[0].rows, 1) << name;
  }
  EXPECT_EQ(op(g, "d_up").kind, operators::gemm);
  EXPECT_EQ(op(g, "d_gelu").kind, operators::gelu_backward);
  // The residual's gradient is that of both GEMMs' outputs: no operator between.
  EXPECT_EQ(g.tensor(op(g, "db_down").reads[0].tensor).name, "dy");
  EXPECT_EQ(g.tensor(op(g, "dw_oproj").reads[0].tensor).name, "dh");
}

TEST(TrainBlock, GradientsAreOutputsOfTheShapeOfWhatTheyBelongTo) {
  std::mt19937 random(37);
  for (int round = 0; round < 100; ++round) {
    Workload work = test::random_work(random);
    work.phase = Phase::train;
    work.context = 0;
    const ModelConfig config = test::random_model(random);
    const Graph g = build_block(config, work);
    std::int32_t next = 0;
    for (const OpId id : topological_order(g)) ASSERT_EQ(id.index, next++);
    for (const Op& o : g.ops()) ASSERT_EQ(check_operands(g, o), Names{});
    for (const Tensor& t : g.tensors()) {
      if (t.role != Role::weight && t.name != "x") continue;
      const Tensor& gradient = tensor(g, "d" + t.name);
      ASSERT_EQ(gradient.role, Role::output) << t.name;
      ASSERT_EQ(gradient.rows, t.rows) << t.name;
      ASSERT_EQ(gradient.cols, t.cols) << t.name;
      ASSERT_EQ(gradient.dtype, t.dtype) << t.name;
    }
    EXPECT_EQ(tensor(g, "dy").role, Role::input);
    // Forward activations and gradients are all read by someone.
    for (std::size_t i = 0; i < g.tensors().size(); ++i) {
      const TensorId id{static_cast<std::int32_t>(i)};
      ASSERT_EQ(g.consumers(id).empty(), g.tensor(id).role == Role::output) << g.tensor(id).name;
    }
  }
}

TEST(TrainBlock, TakesTwiceTheForwardFlopsInItsGemms) {
  for (const ModelConfig& config : {test::llama2_7b(), test::gpt2_xl()}) {
    const Graph g = build_block(config, train(1, 512));
    std::int64_t gemms[2] = {0, 0};
    std::int64_t attention[2] = {0, 0};
    for (const Op& o : g.ops()) {
      const std::size_t pass = o.pass == Pass::backward ? 1 : 0;
      if (o.kind == operators::gemm) gemms[pass] += flops(g, o).value();
      if (o.kind->op_class == OpClass::attention && o.kind->locality == Locality::contraction)
        attention[pass] += flops(g, o).value();
    }
    EXPECT_EQ(gemms[1], 2 * gemms[0]);
    EXPECT_EQ(attention[1], 2 * attention[0]);
  }
  // 4·4096² + 3·4096·11008 weights, 2 FLOPs a token forward, 4 backward.
  const Graph g = build_block(test::llama2_7b(), train(1, 2048));
  std::int64_t all = 0;
  for (const Op& o : g.ops())
    if (o.kind == operators::gemm) all += flops(g, o).value();
  EXPECT_EQ(all, 3 * 828'928'688'128);
}

TEST(TrainBlock, LayoutsOfTheGemmsAreThoseOfTheThreeProducts) {
  const Graph g = build_block(test::llama2_7b(), train(1, 256));
  const GemmShape forward = gemm_shape(op(g, "down"));
  EXPECT_EQ(forward.M, 256);
  EXPECT_EQ(forward.N, 4096);
  EXPECT_EQ(forward.K, 11008);
  EXPECT_FALSE(forward.a_is_km || forward.b_is_kn);
  const GemmShape d_activation = gemm_shape(op(g, "d_down"));
  EXPECT_EQ(d_activation.M, 256);
  EXPECT_EQ(d_activation.N, 11008);
  EXPECT_EQ(d_activation.K, 4096);
  EXPECT_FALSE(d_activation.a_is_km);
  EXPECT_TRUE(d_activation.b_is_kn);
  const GemmShape d_weight = gemm_shape(op(g, "dw_down"));
  EXPECT_EQ(d_weight.M, 4096);
  EXPECT_EQ(d_weight.N, 11008);
  EXPECT_EQ(d_weight.K, 256);
  EXPECT_TRUE(d_weight.a_is_km && d_weight.b_is_kn);
}

TEST(TrainBlock, BytesOfTheWeightGradientsAreThoseOfTheWeights) {
  const Graph g = build_block(test::llama2_7b(), train(1, 2048));
  Bytes gradients;
  for (const Tensor& t : g.tensors())
    if (t.role == Role::output && t.name.rfind("dw_", 0) == 0) gradients += t.bytes();
  EXPECT_EQ(gradients, Bytes(404'766'720));
  // dw_down: dy [M, D] and act [M, F] in, [D, F] out.
  EXPECT_EQ(bytes_read(g, op(g, "dw_down")), Bytes(2LL * 2048 * (4096 + 11008)));
  EXPECT_EQ(bytes_written(g, op(g, "dw_down")), Bytes(2LL * 4096 * 11008));
  // d_norm2: dy and x, the weight, one fp32 statistic a row; dx out.
  EXPECT_EQ(bytes_read(g, op(g, "d_norm2")), Bytes(2 * 2048 * 8192 + 8192 + 2048 * 4));
}

std::set<std::string> names_of(const Graph& g, const std::vector<SavedTensor>& saved) {
  std::set<std::string> names;
  for (const SavedTensor& s : saved) names.insert(g.tensor(s.tensor).name);
  return names;
}

Bytes bytes_of(const std::vector<SavedTensor>& saved) {
  Bytes total;
  for (const SavedTensor& s : saved) total += s.bytes;
  return total;
}

TEST(SavedTensors, OfTheTextbookBlockIncludeTheProbabilities) {
  const Graph g = build_block(test::llama2_7b(), train(1, 2048));
  const std::vector<SavedTensor> saved = saved_tensors(g);
  EXPECT_EQ(names_of(g, saved),
            (std::set<std::string>{"x", "norm1_stats", "xn1", "qkv", "q_rot", "k_rot", "probs",
                                   "attn", "h", "norm2_stats", "xn2", "gu", "act"}));
  // Of qkv only V is read again. In units of M·D·2 bytes: x xn1 V q k attn h xn2 are 8; gu and act
  // 3F/D; probabilities H·T² elements; two statistics in fp32.
  const std::int64_t M = 2048;
  EXPECT_EQ(bytes_of(saved), Bytes(2 * M * (8 * 4096 + 3 * 11008) + 2LL * 32 * M * M + 2 * 4 * M));
}

TEST(SavedTensors, ShrinkWithTheLogSumExpAndRecomputation) {
  const Graph forward = build_block(test::llama2_7b(), test::forward(1, 2048));
  BackwardOptions options;
  options.save_log_sum_exp = true;
  options.recompute = {"xn1", "xn2", "act"};
  const Graph g = differentiate(forward, options);
  const std::vector<SavedTensor> saved = saved_tensors(g);
  EXPECT_EQ(names_of(g, saved),
            (std::set<std::string>{"x", "norm1_stats", "qkv", "q_rot", "k_rot", "softmax_lse",
                                   "attn", "h", "norm2_stats", "gu"}));
  const std::int64_t M = 2048;
  EXPECT_EQ(bytes_of(saved), Bytes(2 * M * (6 * 4096 + 2 * 11008) + 4 * 32 * M + 2 * 4 * M));
  EXPECT_EQ(op(g, "d_softmax").kind, operators::softmax_backward_delta);
  EXPECT_EQ(op(g, "re_softmax").kind, operators::softmax_recompute);
  EXPECT_EQ(op(g, "re_scores").kind, operators::attention_scores);
  EXPECT_EQ(op(g, "re_norm2").kind, operators::norm_apply);
  EXPECT_EQ(op(g, "d_swiglu").writes.size(), 2U);
}

TEST(Differentiate, KeepsTheGraphThatItWasDerivedFrom) {
  const ModelConfig config = test::tiny_llama();
  const Graph forward = build_block(config, test::forward(2, 3));
  BackwardOptions options;
  options.save_log_sum_exp = true;
  const Graph once = differentiate(forward, options);
  ASSERT_NE(once.forward(), nullptr);
  EXPECT_EQ(once.forward()->ops().size(), forward.ops().size());
  EXPECT_EQ(once.forward()->tensors().size(), forward.tensors().size());
  EXPECT_EQ(forward.forward(), nullptr);
  const Graph twice = differentiate(*build_block(config, train(2, 3)).forward(), options);
  EXPECT_EQ(backward_names(once), backward_names(twice));
  EXPECT_EQ(once.tensors().size(), twice.tensors().size());
  EXPECT_THROW(static_cast<void>(differentiate(once)), InternalError);
}

// Rows 0 to 2 of h are made by one product and rows 3 to 5 by another; readers take other parts.
TEST(Differentiate, AsksThatAllRowsAreReadOnce) {
  const auto joint = [](std::int64_t first, std::int64_t between, std::int64_t end) {
    Graph g;
    const auto add = [&](const char* name, Role role, std::int64_t count) {
      return g.whole(g.add_tensor({.name = name, .role = role, .rows = count, .cols = 4}));
    };
    const Operand x = add("x", Role::input, 3);
    const Operand w = add("w", Role::weight, 4);
    const Operand h = add("h", Role::activation, 6);
    const auto gemm = [&](const char* name, const Operand& from, const Operand& to) {
      g.add_op({.name = name, .kind = operators::gemm, .reads = {from, w}, .writes = {to}});
    };
    gemm("upper", x, g.rows(h.tensor, 0, 3));
    gemm("lower", x, g.rows(h.tensor, 3, 3));
    gemm("above", g.rows(h.tensor, first, 2 - first), add("y", Role::output, 2 - first));
    gemm("below", g.rows(h.tensor, between, end - between), add("z", Role::output, end - between));
    return g;
  };
  const auto gradient_of = [&](std::int64_t first, std::int64_t between, std::int64_t end) {
    static_cast<void>(differentiate(joint(first, between, end)));
  };
  EXPECT_NO_THROW(gradient_of(0, 2, 6));
  EXPECT_THROW(gradient_of(0, 3, 6), InputError);     // row 2 is not read
  EXPECT_THROW(gradient_of(1, 2, 6), InputError);     // row 0 is not, though six rows are read
  EXPECT_THROW(gradient_of(0, 2, 5), InputError);     // row 5 is not
  EXPECT_THROW(gradient_of(0, 1, 6), InternalError);  // row 1 is read twice
}

TEST(HasBackward, IsTrueOfTrainingBlocksOnly) {
  EXPECT_FALSE(has_backward(build_block(test::tiny_llama(), test::forward(1, 2))));
  EXPECT_TRUE(has_backward(build_block(test::tiny_llama(), train(1, 2))));
}

TEST(Differentiate, AssertsThatWhatItShallRecomputeExists) {
  const Graph forward = build_block(test::tiny_llama(), test::forward(1, 3));
  EXPECT_THROW(differentiate(forward, {.recompute = {"nothing"}}), InternalError);
  EXPECT_THROW(differentiate(forward, {.recompute = {"w_qkv"}}), InternalError);
  // The rotated keys of a step go into the cache, and nobody reads them themselves.
  EXPECT_THROW(differentiate(build_block(test::tiny_llama(), test::decode(1, 1, 4))), InputError);
}

}  // namespace
}  // namespace fuseline
