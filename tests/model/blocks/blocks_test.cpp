#include "model/blocks/block.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/operators/operator_table.h"
#include "tests/model/tiny_models.h"
#include "tests/support/graph_names.h"

namespace fuseline {
namespace {

using Names = std::vector<std::string>;

Names op_names(const Graph& g) {
  Names names;
  for (const Op& op : g.ops()) names.push_back(op.name);
  return names;
}

using test::tensor;

using test::op;

Bytes weight_bytes(const Graph& g) {
  Bytes total;
  for (const Tensor& t : g.tensors())
    if (t.role == Role::weight) total += t.bytes();
  return total;
}

TEST(LlamaBlock, HasTheOperatorsOfTheFamilyInOrder) {
  EXPECT_EQ(op_names(build_block(test::llama2_7b(), test::forward(1, 2048))),
            (Names{"norm1", "qkv", "rope_q", "rope_k", "scores", "softmax", "context", "oproj",
                   "residual1", "norm2", "gate_up", "swiglu", "down", "residual2"}));
}

TEST(LlamaBlock, AppendsToTheCacheInDecodeBeforeItReadsIt) {
  EXPECT_EQ(
      op_names(build_block(test::llama2_7b(), test::decode(1, 1, 2048))),
      (Names{"norm1", "qkv", "rope_q", "rope_k", "append_k", "append_v", "scores", "softmax",
             "context", "oproj", "residual1", "norm2", "gate_up", "swiglu", "down", "residual2"}));
}

TEST(GptBlock, HasBiasesAndNoRope) {
  EXPECT_EQ(
      op_names(build_block(test::gpt2_xl(), test::forward(1, 1024))),
      (Names{"norm1", "qkv", "qkv_bias", "scores", "softmax", "context", "oproj", "oproj_bias",
             "residual1", "norm2", "up", "up_bias", "gelu", "down", "down_bias", "residual2"}));
}

TEST(LlamaBlock, AddsTheBiasesThatTheModelHas) {
  ModelConfig qwen = test::llama2_7b();
  qwen.qkv_bias = true;
  const Graph g = build_block(qwen, test::forward(1, 8));
  EXPECT_TRUE(g.find_op("qkv_bias").has_value());
  EXPECT_FALSE(g.find_op("oproj_bias").has_value());
  EXPECT_EQ(tensor(g, "b_qkv").cols, 3 * 4096);
  EXPECT_EQ(tensor(g, "qkv_mm").cols, 3 * 4096);
}

TEST(LlamaBlock, Has405MegabytesOfWeightsInTheSevenBillionModel) {
  // 4·4096² + 3·4096·11008 elements and two norm weights, 2 bytes each.
  const Graph g = build_block(test::llama2_7b(), test::decode(1, 1, 2048));
  EXPECT_EQ(weight_bytes(g), Bytes(2 * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096)));
  EXPECT_EQ(weight_bytes(g), Bytes(404'766'720));
}

TEST(LlamaBlock, Has33MegabytesOfCacheAt2048Tokens) {
  const Graph g = build_block(test::llama2_7b(), test::decode(1, 1, 2048));
  EXPECT_EQ(tensor(g, "cache_k").bytes() + tensor(g, "cache_v").bytes(), Bytes(33'554'432));
  EXPECT_EQ(tensor(g, "cache_k").role, Role::cache);
}

TEST(LlamaBlock, SharesKeysAmongGroupsOfQueries) {
  ModelConfig c = test::llama2_7b();
  c.Hkv = 8;
  const Graph g = build_block(c, test::forward(2, 16));
  EXPECT_EQ(tensor(g, "qkv").cols, 4096 + 2 * 1024);
  EXPECT_EQ(tensor(g, "k_rot").cols, 1024);
  EXPECT_EQ(tensor(g, "scores").rows, 2 * 32 * 16);
  const Operand v = op(g, "context").reads[1];
  EXPECT_EQ(v.col_begin, 4096 + 1024);
  EXPECT_EQ(v.cols, 1024);
}

TEST(LlamaBlock, ReadsOnlyTheSlidingWindowOfTheCache) {
  ModelConfig c = test::llama2_7b();
  c.sliding_window = 100;
  // One new token sees 100; three new ones together see 102; a short context is read whole.
  EXPECT_EQ(op(build_block(c, test::decode(2, 1, 500)), "scores").reads[1].rows, 2 * 100);
  EXPECT_EQ(op(build_block(c, test::decode(2, 3, 500)), "scores").reads[1].rows, 2 * 102);
  EXPECT_EQ(op(build_block(c, test::decode(2, 1, 90)), "scores").reads[1].rows, 2 * 90);
}

TEST(LlamaBlock, MasksInForwardAndForSeveralNewTokens) {
  const ModelConfig c = test::tiny_llama();
  EXPECT_TRUE(
      op(build_block(c, test::forward(1, 4)), "scores").attributes.as<AttentionShape>().causal);
  EXPECT_TRUE(
      op(build_block(c, test::decode(1, 2, 4)), "scores").attributes.as<AttentionShape>().causal);
  EXPECT_FALSE(
      op(build_block(c, test::decode(1, 1, 4)), "scores").attributes.as<AttentionShape>().causal);
}

TEST(ModelEnds, InTrainingEndInTheLossAndGradientsOfTheirWeights) {
  const Graph exit = build_exit(test::gpt2_xl(), test::train(2, 16));
  EXPECT_EQ(tensor(exit, "logits").rows, 32);  // of all tokens
  EXPECT_EQ(tensor(exit, "loss").role, Role::output);
  EXPECT_EQ(tensor(exit, "loss").dtype, Dtype::fp32);
  EXPECT_EQ(tensor(exit, "dloss").role, Role::input);
  for (const char* name : {"dx", "dw_lm_head", "dw_final_norm", "db_final_norm"})
    EXPECT_EQ(tensor(exit, name).role, Role::output) << name;
  EXPECT_FALSE(exit.find_tensor("dtargets").has_value());
  const Graph entry = build_entry(test::gpt2_xl(), test::train(2, 16));
  EXPECT_EQ(tensor(entry, "dx").role, Role::input);
  EXPECT_EQ(tensor(entry, "dw_embed").rows, 50257);  // all rows, not those gathered
  EXPECT_EQ(tensor(entry, "dw_position").rows, 1024);
  EXPECT_FALSE(entry.find_tensor("dids").has_value());
}

TEST(Block, ReportsSizesThatOverflowByteCounts) {
  ModelConfig c = test::llama2_7b();
  c.F = std::int64_t{1} << 24;
  EXPECT_THROW(build_block(c, test::forward(std::int64_t{1} << 24, std::int64_t{1} << 24)),
               InputError);
}

TEST(Block, UsesTheWorkloadsTypeForEveryTensor) {
  Workload w = test::forward(1, 4);
  w.dtype = Dtype::fp32;
  const Graph half = build_block(test::tiny_llama(), test::forward(1, 4));
  const Graph full = build_block(test::tiny_llama(), w);
  EXPECT_EQ(weight_bytes(full), 2 * weight_bytes(half));
}

TEST(Block, IsLegalForRandomShapes) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    const ModelConfig c = test::random_model(random);
    const Workload w = test::random_work(random);
    for (const Graph& g : {build_block(c, w), build_entry(c, w), build_exit(c, w)}) {
      // Each operator agrees with the operator table, insertion order is a dependency order, every
      // tensor that is not an output is read, and every activation is written once.
      std::int32_t next = 0;
      for (const OpId id : topological_order(g)) ASSERT_EQ(id.index, next++);
      for (const Op& o : g.ops()) ASSERT_EQ(check_operands(g, o), Names{});
      for (std::size_t i = 0; i < g.tensors().size(); ++i) {
        const TensorId id{static_cast<std::int32_t>(i)};
        const Role role = g.tensor(id).role;
        const bool written =
            role == Role::activation || role == Role::output || role == Role::cache;
        ASSERT_EQ(g.producers(id).size(), written ? 1U : 0U) << g.tensor(id).name;
        ASSERT_EQ(g.consumers(id).empty(), role == Role::output) << g.tensor(id).name;
      }
    }
  }
}

TEST(ModelEnds, GatherOnlyTheRowsAskedFor) {
  // 16 tokens of 8,192 bytes each, their ids, and the rows written.
  const Graph g = build_entry(test::llama2_7b(), test::forward(1, 16));
  EXPECT_EQ(bytes_read(g, g.ops()[0]), Bytes(16 * 8192 + 16 * 4));
  EXPECT_EQ(bytes_written(g, g.ops()[0]), Bytes(16 * 8192));
  EXPECT_EQ(flops(g), Flops(0));
}

TEST(ModelEnds, AddPositionsInGptModels) {
  const Graph g = build_entry(test::gpt2_xl(), test::forward(2, 16));
  EXPECT_EQ(bytes_read(g, g.ops()[0]), Bytes((32 + 16) * 3200 + 32 * 4));
  EXPECT_EQ(flops(g), Flops(32 * 1600));
}

TEST(ModelEnds, ComputeLogitsOfTheLastTokensOfAPrompt) {
  const Graph prompt = build_exit(test::llama2_7b(), test::forward(3, 2048));
  EXPECT_EQ(tensor(prompt, "logits").rows, 3);
  EXPECT_EQ(flops(prompt, op(prompt, "lm_head")), Flops(2LL * 3 * 32000 * 4096));
  const Graph step = build_exit(test::llama2_7b(), test::decode(3, 2, 2048));
  EXPECT_EQ(tensor(step, "logits").rows, 6);
  EXPECT_EQ(tensor(step, "logits").role, Role::output);
}

}  // namespace
}  // namespace fuseline
