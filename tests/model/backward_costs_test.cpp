// What operators of the backward pass cost, and the few that are simple enough for values by hand.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/facts.h"
#include "model/reference.h"
#include "tests/model/one_op.h"

namespace fuseline {
namespace {

using test::Input;
using test::one_op;

// Attention of 2 sequences of 3 tokens, 4 heads of 5 over 2 key heads: 6 visible pairs a head.
AttentionShape small_attention() {
  AttentionShape a;
  a.batch = 2;
  a.heads = 4;
  a.kv_heads = 2;
  a.head_width = 5;
  a.q_tokens = a.kv_tokens = 3;
  a.causal = true;
  return a;
}

// What the operator takes: the attention above, or nothing.
Attributes small(OpKind kind) {
  if (kind->op_class == OpClass::attention) return small_attention();
  if (kind == operators::embedding_backward) return Positions{.tokens = 3};
  if (kind == operators::head_norm_backward || kind == operators::head_norm_weight_grad)
    return HeadNorm{.head_width = 5};
  if (kind == operators::head_part || kind == operators::head_part_sum)
    return HeadPart{{.group = 5, .begin = 3, .step = 1, .count = 2}};
  if (kind == operators::choose_experts_backward) return ExpertChoice{.count = 2};
  if (kind == operators::grouped_weight_grad) return RaggedSums{{3, 1, 0}};
  if (kind == operators::sequence_sum || kind == operators::modulate_backward)
    return Sequences{.batch = 2, .tokens = 2};
  if (kind == operators::conv_rows_backward || kind == operators::conv_rows_weight_grad)
    return ConvolutionShape{.batch = 2, .tokens = 2, .taps = 3};
  return {};
}

struct Cost {
  OpKind kind;
  std::vector<Input> inputs;
  Input output;
  std::int64_t flops;
  std::int64_t read;     // elements
  std::int64_t written;  // elements
};

TEST(BackwardOperators, CostWhatTheirFormulaSays) {
  const std::int64_t pairs = 2 * 4 * 6;
  const Input probs{24, 3};
  const Input per_row{24, 1};
  const Input queries{6, 20};
  const Input keys{6, 10};
  const Input x{4, 7};
  const Input vector{1, 7};
  const std::vector<Cost> costs{
      {operators::attention_backward_dot, {queries, queries}, per_row, 2 * 120, 240, 24},
      {operators::attention_d_probs, {queries, keys}, probs, pairs * 10, 180, 72},
      {operators::softmax_backward, {probs, probs}, probs, pairs * 4, 144, 72},
      {operators::softmax_backward_delta, {probs, probs, per_row}, probs, pairs * 2, 168, 72},
      {operators::softmax_recompute, {probs, per_row}, probs, pairs * 2, 96, 72},
      {operators::attention_d_capped, {probs, probs}, probs, pairs * 4, 144, 72},
      {operators::attention_d_q, {probs, keys}, queries, pairs * 10, 132, 120},
      {operators::attention_d_k, {probs, queries}, keys, pairs * 10, 192, 60},
      {operators::attention_d_v, {probs, queries}, keys, pairs * 10, 192, 60},
      {operators::rms_norm_backward, {x, x, vector, {4, 1}}, x, 28 * 7 + 4, 67, 28},
      {operators::layer_norm_backward, {x, x, vector, {4, 2}}, x, 28 * 10 + 8, 71, 28},
      {operators::norm_weight_grad, {x, x, {4, 1}}, vector, 28 * 3, 60, 7},
      {operators::norm_weight_grad, {x, x, {4, 2}}, vector, 28 * 4, 64, 7},
      {operators::norm_apply, {x, {4, 1}, vector}, x, 28 * 2, 39, 28},
      {operators::norm_apply, {x, {4, 2}, vector, vector}, x, 28 * 4, 50, 28},
      {operators::swiglu_backward, {{4, 7}, {4, 14}}, {4, 14}, 28 * 10, 84, 56},
      {operators::gelu_backward, {x, x}, x, 28 * 18, 56, 28},
      {operators::geglu_backward, {{4, 7}, {4, 14}}, {4, 14}, 28 * 29, 84, 56},
      {operators::gelu_erf_backward, {x, x}, x, 28 * 10, 56, 28},
      {operators::relu_backward, {x, x}, x, 28 * 2, 56, 28},
      {operators::softplus_backward, {x, x}, x, 28 * 4, 56, 28},
      {operators::softcap_backward, {x, x}, x, 28 * 5, 56, 28},
      {operators::head_norm_backward,
       {queries, queries, {1, 5}},
       queries,
       120 * 9 + 24 * 4,
       245,
       120},
      {operators::head_norm_weight_grad, {queries, queries}, {1, 20}, 120 * 5 + 24 * 3, 240, 20},
      {operators::head_fold, {{1, 20}}, {1, 5}, 15, 20, 5},
      {operators::normalise_backward, {x, x}, x, 28 * 11 + 4 * 6, 56, 28},
      {operators::silu_backward, {x, x}, x, 28 * 8, 56, 28},
      {operators::grad_add, {x, x}, x, 28, 56, 28},
      {operators::column_sum, {x}, vector, 28, 28, 7},
      {operators::concat, {x, {4, 2}}, {4, 9}, 0, 36, 36},
      {operators::row_dot_partial, {x, x}, {4, 1}, 28 * 2, 56, 4},
      {operators::row_dot_partial, {x, x, vector}, {4, 1}, 28 * 3, 63, 4},
      {operators::row_dot_partial, {x, x, vector, vector}, {4, 2}, 28 * 5, 70, 8},
      {operators::row_dot_finish, {{4, 6}}, {4, 2}, 24 + 8, 24, 8},
      {operators::norm_backward_deferred, {x, x, vector, {4, 1}, {4, 1}, x}, x, 28 * 6, 99, 28},
      {operators::norm_backward_deferred, {x, x, vector, {4, 2}, {4, 2}, x}, x, 28 * 8, 107, 28},
      {operators::col_stats_partial, {x}, {7, 1}, 28, 28, 7},
      {operators::col_stats_partial, {x, x, {4, 1}}, {7, 1}, 28 * 3, 60, 7},
      {operators::col_stats_finish, {{7, 3}}, vector, 21, 21, 7},
      {operators::cube, {x}, x, 28 * 2, 28, 28},
      {operators::scale, {x}, x, 28, 28, 28},
      {operators::expand_rows, {{4, 1}}, x, 28, 4, 28},
      {operators::head_sum, {queries}, keys, 6 * 10, 120, 60},
      {operators::cross_entropy, {x, {4, 1}}, {4, 1}, 28 * 4 + 4 * 3, 32, 4},
      {operators::cross_entropy_backward, {{4, 1}, x, {4, 1}, {4, 1}}, x, 28 * 4, 40, 28},
      {operators::cross_entropy_partial, {x, {4, 1}}, {4, 3}, 28 * 4, 32, 12},
      {operators::cross_entropy_finish, {{4, 6}}, {4, 1}, 24 * 2 + 4 * 3, 24, 4},
      {operators::embedding_backward, {x, {4, 1}}, {9, 7}, 28, 32, 63},
      {operators::embedding_backward, {x}, {9, 7}, 28, 28, 63},
      {operators::norm_backward_deferred, {x, x, vector, {4, 1}, {4, 1}}, x, 28 * 5, 71, 28},
      {operators::row_dot, {x, x}, {4, 1}, 28 * 2, 56, 4},
      {operators::vector_product, {x, vector}, {1, 4}, 28 * 2, 35, 4},
      {operators::vector_product, {x, vector, {1, 4}}, {1, 4}, 28 * 2 + 4, 39, 4},
      {operators::place_numbers, {{8, 1}, {8, 1}}, {4, 2}, 0, 16, 8},
      {operators::choose_experts_backward, {{4, 2}, x, {4, 2}}, x, 28 * 4 + 8 * 4, 44, 28},
      {operators::grouped_weight_grad, {{4, 2}, x}, {6, 7}, 2 * 2 * 28, 36, 42},
      {operators::head_part, {queries}, {6, 8}, 0, 48, 48},
      {operators::head_part_sum, {queries}, {6, 2}, 12 * 3, 48, 12},
      {operators::column_sum, {x, x}, vector, 28 * 2, 56, 7},
      {operators::conv_rows_backward, {x, {3, 7}}, x, 28 * 6, 49, 28},
      {operators::conv_rows_weight_grad, {x, x}, {3, 7}, 28 * 6, 56, 21},
      {operators::sequence_sum, {x}, {2, 7}, 28, 28, 14},
      {operators::sequence_sum, {x, x}, {2, 7}, 28 * 2, 56, 14},
      {operators::modulate_backward, {x, {2, 7}}, x, 28 * 2, 42, 28},
  };
  std::set<std::string> seen{"rope_backward",             // as rope
                             "selective_scan_backward"};  // has several results
  for (const Cost& cost : costs) {
    const Graph g =
        one_op(cost.kind, cost.inputs, cost.output.rows, cost.output.cols, small(cost.kind));
    const Op& op = g.ops()[0];
    const std::string name = name_of(cost.kind);
    EXPECT_EQ(check_operands(g, op), std::vector<std::string>{}) << name;
    EXPECT_EQ(flops(g, op), Flops(cost.flops)) << name;
    EXPECT_EQ(bytes_read(g, op), Bytes(2 * cost.read)) << name;
    EXPECT_EQ(bytes_written(g, op), Bytes(2 * cost.written)) << name;
    EXPECT_GE(cost.kind->sum_length(g, op), 1) << name;
    seen.insert(name_of(cost.kind));
  }
  for (const Operator* info : all_operators()) {
    if (std::string(info->gradient.why_none != nullptr ? info->gradient.why_none : "") ==
        kOfAGradient) {
      EXPECT_TRUE(seen.contains(info->name.value)) << info->name.value;
    }
  }
}

TEST(BackwardOperators, SumAsManyTermsAsTheirReductionIsLong) {
  const auto length = [](OpKind kind, const std::vector<Input>& inputs, const Input& output) {
    Attributes a = small(kind);
    if (kind == operators::gemm) a = GemmLayout{.a_is_km = true, .b_is_kn = true};
    if (kind == operators::col_stats_partial) a = PartialTile{.rows = 3};
    const Graph g = one_op(kind, inputs, output.rows, output.cols, a);
    return kind->sum_length(g, g.ops()[0]);
  };
  EXPECT_EQ(length(operators::gemm, {{9, 2}, {9, 4}}, {2, 4}), 9);
  // A key is seen by up to 3 queries of each of the 2 heads that share it.
  EXPECT_EQ(length(operators::attention_d_k, {{24, 3}, {6, 20}}, {6, 10}), 3 * 2);
  EXPECT_EQ(length(operators::attention_d_v, {{24, 3}, {6, 20}}, {6, 10}), 3 * 2);
  EXPECT_EQ(length(operators::attention_d_q, {{24, 3}, {6, 10}}, {6, 20}), 3);
  EXPECT_EQ(length(operators::attention_d_probs, {{6, 20}, {6, 10}}, {24, 3}), 5);
  EXPECT_EQ(length(operators::norm_weight_grad, {{4, 7}, {4, 7}, {4, 1}}, {1, 7}), 4);
  EXPECT_EQ(length(operators::rms_norm_backward, {{4, 7}, {4, 7}, {1, 7}, {4, 1}}, {4, 7}), 7);
  EXPECT_EQ(length(operators::col_stats_partial, {{4, 7}}, {7, 2}), 3);
  EXPECT_EQ(length(operators::col_stats_finish, {{7, 2}}, {1, 7}), 2);
  EXPECT_EQ(length(operators::grouped_weight_grad, {{4, 2}, {4, 7}}, {6, 7}), 3);
  EXPECT_EQ(length(operators::head_part_sum, {{6, 20}}, {6, 2}), 4);
  EXPECT_EQ(length(operators::row_dot, {{4, 7}, {4, 7}}, {4, 1}), 7);
  EXPECT_EQ(length(operators::vector_product, {{4, 7}, {1, 7}}, {1, 4}), 7);
}

TEST(BackwardPrimitives, ComputeTheirFormula) {
  const auto attributes = [](OpKind kind) {  // 4 heads of 5 over 2 key heads
    if (kind == operators::head_sum) return Attributes(small_attention());
    return kind == operators::cube ? Attributes() : Attributes(Scalar{-0.5});
  };
  const auto run = [&](OpKind kind, const Input& in, const Input& out,
                       const std::vector<double>& values) {
    const Graph g = one_op(kind, {in}, out.rows, out.cols, attributes(kind));
    const Op& op = g.ops()[0];
    const TensorValues v = run_reference(g, {{g.tensor(op.reads[0].tensor).name, values}});
    return v.at(op.writes[0].tensor);
  };
  EXPECT_EQ(run(operators::cube, {1, 3}, {1, 3}, {1, -2, 3}), (std::vector<double>{1, -8, 27}));
  EXPECT_EQ(run(operators::scale, {1, 2}, {1, 2}, {4, -6}), (std::vector<double>{-2, 3}));
  EXPECT_EQ(run(operators::expand_rows, {2, 1}, {2, 2}, {4, -6}),
            (std::vector<double>{-2, -2, 3, 3}));
  std::vector<double> heads(20);
  for (std::size_t i = 0; i < heads.size(); ++i) heads[i] = static_cast<double>(i * i);
  const std::vector<double> sums = run(operators::head_sum, {1, 20}, {1, 10}, heads);
  for (std::size_t c = 0; c < 5; ++c) {
    EXPECT_EQ(sums[c], heads[c] + heads[5 + c]);
    EXPECT_EQ(sums[5 + c], heads[10 + c] + heads[15 + c]);
  }
}

TEST(CheckOperands, KnowsTheLayoutsOfAGemm) {
  const GemmLayout layouts{.a_is_km = true, .b_is_kn = true};
  const Graph right = one_op(operators::gemm, {{5, 3}, {5, 4}}, 3, 4, layouts);
  EXPECT_EQ(check_operands(right, right.ops()[0]), std::vector<std::string>{});
  const Graph wrong = one_op(operators::gemm, {{3, 5}, {4, 5}}, 3, 4, layouts);
  EXPECT_FALSE(check_operands(wrong, wrong.ops()[0]).empty());
  EXPECT_EQ(gemm_shape(right.ops()[0]).K, 5);
  EXPECT_EQ(flops(right), Flops(2 * 3 * 4 * 5));
}

TEST(CheckOperands, ChecksTheSecondResult) {
  Graph g;
  const Operand x = g.whole(g.add_tensor({.name = "x", .rows = 4, .cols = 8}));
  const Operand w = g.whole(g.add_tensor({.name = "w", .rows = 1, .cols = 8}));
  const Operand y = g.whole(g.add_tensor({.name = "y", .rows = 4, .cols = 8}));
  const Operand stats = g.whole(g.add_tensor({.name = "stats", .rows = 4, .cols = 1}));
  const OpId norm = g.add_op({"norm", operators::rms_norm, {x, w}, {y, stats}, {}, ""});
  const OpId wrong = g.add_op({"wrong", operators::rms_norm, {x, w}, {y, w}, {}, ""});
  const OpId none = g.add_op({"none", operators::silu, {x}, {y, stats}, {}, ""});
  EXPECT_EQ(check_operands(g, g.op(norm)), std::vector<std::string>{});
  EXPECT_EQ(check_operands(g, g.op(wrong)).size(), 1U);
  EXPECT_EQ(check_operands(g, g.op(none)),
            std::vector<std::string>{"none: silu writes one operand, not 2"});
}

}  // namespace
}  // namespace fuseline
