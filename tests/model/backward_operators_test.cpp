// Every operator's gradient, alone, over random small shapes.
#include <gtest/gtest.h>
#include <map>

#include <cmath>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/backward.h"
#include "model/backward_adjoint.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/operators/support/facts.h"
#include "tests/model/gradient_check.h"
#include "tests/model/random_experts.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using test::pick;

struct Input {
  std::int64_t rows, cols;
  Role role = Role::input;
};

// One operator from inputs "x0", "x1", .. to the output "y" [rows, cols].
Graph one_op(OpKind kind, const std::vector<Input>& inputs, std::int64_t rows, std::int64_t cols,
             const Attributes& attributes = {}) {
  Graph g;
  Op op{.name = "op", .kind = kind, .attributes = attributes, .site = "op"};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool table = inputs[i].role == Role::table;
    op.reads.push_back(
        g.whole(g.add_tensor({.name = table ? (i == 1 ? "cos" : "sin") : "x" + std::to_string(i),
                              .role = inputs[i].role,
                              .rows = inputs[i].rows,
                              .cols = inputs[i].cols})));
  }
  op.writes.push_back(
      g.whole(g.add_tensor({.name = "y", .role = Role::output, .rows = rows, .cols = cols})));
  g.add_op(op);
  return g;
}

AttentionShape random_attention(std::mt19937& random) {
  AttentionShape a;
  a.batch = pick(random, 1, 2);
  a.kv_heads = pick(random, 1, 2);
  a.heads = a.kv_heads * pick(random, 1, 3);
  a.head_width = pick(random, 1, 4);
  a.q_tokens = pick(random, 2, 5);
  a.kv_tokens = a.q_tokens;
  a.causal = random() % 3 != 0;
  a.window = random() % 3 == 0 ? pick(random, 2, 4) : 0;
  a.scale = 1.0 / std::sqrt(static_cast<double>(a.head_width));
  return a;
}

Graph random_op(OpKind kind, std::mt19937& random) {
  const std::int64_t M = pick(random, 1, 6);
  const std::int64_t N = pick(random, 2, 9);
  const std::int64_t K = pick(random, 2, 9);
  const NormEps norm{1e-3};
  const AttentionShape a = random_attention(random);
  const std::int64_t tokens = a.batch * a.q_tokens;
  const std::int64_t scores = tokens * a.heads;
  const std::int64_t q = a.heads * a.head_width;
  const std::int64_t kv = a.kv_heads * a.head_width;
  if (auto graph = test::ExpertOperator(random).of(kind)) return std::move(*graph);
  if (kind == operators::gemm) return one_op(kind, {{M, K}, {N, K}}, M, N);
  if (kind == operators::attention_scores)
    return one_op(kind, {{tokens, q}, {tokens, kv}}, scores, a.kv_tokens, a);
  if (kind == operators::softmax)
    return one_op(kind, {{scores, a.kv_tokens}}, scores, a.kv_tokens, a);
  if (kind == operators::attention_context)
    return one_op(kind, {{scores, a.kv_tokens}, {tokens, kv}}, tokens, q, a);
  if (kind == operators::rms_norm) return one_op(kind, {{M, N}, {1, N}}, M, N, norm);
  if (kind == operators::layer_norm)
    return one_op(kind, {{M, N + 1}, {1, N + 1}, {1, N + 1}}, M, N + 1, norm);
  if (kind == operators::rope) {
    Pairs heads{.head_width = 2 * a.head_width, .interleaved = random() % 2 == 0};
    if (random() % 2 == 0) heads.rotated = 2 * pick(random, 1, a.head_width);
    const std::int64_t width = 2 * q;
    const Input table{a.q_tokens, heads.turned(), Role::table};
    return one_op(kind, {{tokens, width}, table, table}, tokens, width, heads);
  }
  if (kind == operators::swiglu || kind == operators::geglu) {
    const Pairs pairs{.interleaved = random() % 2 == 0};
    return one_op(kind, {{M, 2 * N}}, M, N, pairs);
  }
  if (kind == operators::head_norm)
    return one_op(kind, {{M, q}, {1, a.head_width}}, M, q,
                  HeadNorm{.head_width = a.head_width, .eps = 1e-2});
  if (kind == operators::normalise)
    return one_op(kind, {{M, N + 1}}, M, N + 1,
                  Normalise{.eps = 1e-3, .centred = random() % 2 == 0});
  if (kind == operators::softcap) return one_op(kind, {{M, N}}, M, N, Scalar{1.5});
  if (kind == operators::bias_add) return one_op(kind, {{M, N}, {1, N}}, M, N);
  if (kind == operators::residual_add || kind == operators::add || kind == operators::mul)
    return one_op(kind, {{M, N}, {M, N}}, M, N);
  if (kind == operators::cross_entropy) return one_op(kind, {{M, N}, {M, 1}}, M, 1);
  if (kind == operators::embedding) {  // sometimes with positions; some of the table's rows at most
    std::vector<Input> inputs{{tokens, 1}, {N, K}};
    if (random() % 2 == 0) inputs.push_back({a.q_tokens, K});
    return one_op(kind, inputs, tokens, K, Positions{a.q_tokens});
  }
  if (kind == operators::concat_rows) {
    const std::int64_t above = pick(random, 1, 4), below = pick(random, 1, 4);
    return one_op(kind, {{a.batch * above, N}, {a.batch * below, N}}, a.batch * (above + below), N,
                  JointSequences{a.batch});
  }
  if (kind == operators::conv_rows) {
    const ConvolutionShape c{pick(random, 1, 3), pick(random, 1, 6), pick(random, 1, 5)};
    return one_op(kind, {{c.batch * c.tokens, N}, {c.taps, N}}, c.batch * c.tokens, N, c);
  }
  if (kind == operators::selective_scan) {
    ScanShape s;
    s.groups = pick(random, 1, 2);
    s.heads = s.groups * pick(random, 1, 2);
    s.head_width = pick(random, 1, 3);
    s.state_width = pick(random, 1, 4);
    s.batch = pick(random, 1, 2);
    s.tokens = pick(random, 2, 7);  // a single one has no decay, and its rates no gradient
    s.chunk = pick(random, 1, 4);
    const std::int64_t rows = s.batch * s.tokens;
    const std::int64_t inner = s.heads * s.head_width;
    const std::int64_t keys = s.groups * s.state_width;
    const std::int64_t rates = random() % 2 == 0 ? s.state_width : 1;
    Graph g =
        one_op(kind, {{rows, inner}, {rows, s.heads}, {rows, keys}, {rows, keys}, {s.heads, rates}},
               rows, inner, s);
    for (const char* exact : {"x1", "x4"}) g.tensor(*g.find_tensor(exact)).dtype = Dtype::fp32;
    return g;
  }
  const std::vector<OpKind> by_sequence{operators::modulate, operators::gate_add,
                                        operators::mul_sequence, operators::add_sequence};
  if (std::ranges::find(by_sequence, kind) != by_sequence.end()) {
    const Sequences rows{.batch = a.batch, .tokens = pick(random, 1, 6)};
    std::vector<Input> inputs;
    for (const OperandSpec& spec : kind->reads)
      inputs.push_back({spec.rows == std::string("B") ? a.batch : a.batch * rows.tokens, N});
    return one_op(kind, inputs, a.batch * rows.tokens, N, rows);
  }
  // Any other operator: a random size for each letter of its shapes.
  std::map<std::string, std::int64_t> sizes{{"1", 1}, {"2", 2}};
  const auto size = [&](const std::string& letter) {
    if (letter.size() > 1) return 2 * sizes.try_emplace(letter.substr(1), N).first->second;
    return sizes.try_emplace(letter, pick(random, 2, 9)).first->second;
  };
  std::vector<Input> inputs;
  for (const OperandSpec& spec : kind->reads) inputs.push_back({size(spec.rows), size(spec.cols)});
  const OperandSpec& write = kind->write;
  const std::int64_t rows = size(write.rows);
  return one_op(kind, inputs, rows, size(write.cols));
}

std::vector<OpKind> differentiable() {
  std::vector<OpKind> kinds;
  for (const Operator* info : all_operators())
    if (info->gradient.rule != nullptr) kinds.emplace_back(*info);
  return kinds;
}

// Steps of a scan are positive and its rates negative: other decays grow beyond any difference.
NamedTensors given_to(OpKind kind, const Graph& joint, std::mt19937& random) {
  NamedTensors inputs = test::outlier_inputs(joint, random);
  if (kind != operators::selective_scan) return inputs;
  for (double& step : inputs.at("x1")) step = std::abs(step) / (1 + std::abs(step));
  for (double& rate : inputs.at("x4")) rate = -std::abs(rate) / (1 + std::abs(rate));
  return inputs;
}

class EveryOperator : public testing::TestWithParam<OpKind> {};

TEST_P(EveryOperator, HasTheGradientOfCentralDifferences) {
  std::mt19937 random(17);
  for (int round = 0; round < 12; ++round) {
    const Graph forward = random_op(GetParam(), random);
    const Graph joint = differentiate(forward);
    const NamedTensors inputs = given_to(GetParam(), joint, random);
    const TensorValues values = run_reference(joint, inputs);
    for (const Tensor& t : forward.tensors()) {
      const bool numbers = index_range(forward, forward.find_tensor(t.name).value()) > 0;
      if (numbers) {
        EXPECT_FALSE(joint.find_tensor("d" + t.name).has_value()) << t.name;
      }
      if (t.role != Role::input || numbers) continue;
      ASSERT_EQ(test::wrong_gradient(forward, inputs, t.name, values.at("d" + t.name), random), "")
          << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backward, EveryOperator, testing::ValuesIn(differentiable()),
                         [](const auto& kind) { return std::string(name_of(kind.param)); });

TEST(BackwardRules, ExistWhereTheForwardPassNeedsThem) {
  EXPECT_GE(differentiable().size(), 17U);
  for (const Operator* info :
       {&operators::gemm, &operators::softmax, &operators::rms_norm, &operators::embedding})
    EXPECT_NE(info->gradient.rule, nullptr) << info->name.value;
}

TEST(GradientCheck, FailsForAnyWrongGradient) {
  // Given a correct gradient, then a wrong sign, one wrong element, a missing factor, zeros.
  std::mt19937 random(19);
  const Graph forward = random_op(operators::rms_norm, random);
  const Graph joint = differentiate(forward);
  const NamedTensors inputs = test::outlier_inputs(joint, random);
  const std::vector<double> right = run_reference(joint, inputs).at("dx0");
  const auto verdict = [&](const std::vector<double>& g) {
    return test::wrong_gradient(forward, inputs, "x0", g, random);
  };
  ASSERT_EQ(verdict(right), "");
  std::vector<double> flipped = right;
  for (double& g : flipped) g = -g;
  EXPECT_NE(verdict(flipped), "");
  std::vector<double> off = right;
  double largest = 0;
  for (const double g : right) largest = std::max(largest, std::abs(g));
  off.back() += 1e-5 * largest;
  EXPECT_NE(verdict(off), "");
  std::vector<double> scaled = right;
  for (double& g : scaled) g *= 1.0001;
  EXPECT_NE(verdict(scaled), "");
  EXPECT_NE(verdict(std::vector<double>(right.size(), 0.0)), "");
}

TEST(Differentiate, RefusesAnOperatorWithoutAGradient) {
  // A block's text may hold such an operator, so it is the reader's to change.
  try {
    differentiate(one_op(operators::square, {{2, 3}}, 2, 3));
    FAIL() << "nothing was refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().value, "square");
    EXPECT_NE(error.problem().message.find("has no gradient: "), std::string::npos);
  }
}

TEST(Differentiate, SumsOverTheReadersOfOneTensor) {
  // y = x·x + silu(x): three contributions to dx.
  Graph g;
  const Operand x = g.whole(g.add_tensor({.name = "x", .role = Role::input, .rows = 3, .cols = 5}));
  const Operand a = g.whole(g.add_tensor({.name = "a", .rows = 3, .cols = 5}));
  const Operand b = g.whole(g.add_tensor({.name = "b", .rows = 3, .cols = 5}));
  const Operand y =
      g.whole(g.add_tensor({.name = "y", .role = Role::output, .rows = 3, .cols = 5}));
  g.add_op({"square", operators::mul, {x, x}, {a}, {}, ""});
  g.add_op({"silu", operators::silu, {x}, {b}, {}, ""});
  g.add_op({"sum", operators::add, {a, b}, {y}, {}, ""});
  std::mt19937 random(23);
  const Graph joint = differentiate(g);
  const NamedTensors inputs = test::outlier_inputs(joint, random);
  EXPECT_EQ(test::wrong_gradient(g, inputs, "x", run_reference(joint, inputs).at("dx"), random),
            "");
  // dy passes to a and b; dx is the sum of three parts.
  EXPECT_TRUE(joint.find_op("add_dx_1").has_value());
  EXPECT_TRUE(joint.find_op("add_dx").has_value());
}

TEST(Differentiate, GivesAPassedThroughGradientItsOwnTensor) {
  const Graph joint = differentiate(one_op(operators::residual_add, {{2, 3}, {2, 3}}, 2, 3));
  for (const char* name : {"dx0", "dx1"}) {
    const TensorId id = joint.find_tensor(name).value();
    EXPECT_EQ(joint.tensor(id).role, Role::output);
    EXPECT_EQ(joint.producers(id).size(), 1U);
  }
}

// Gate and up slices of gu through silu and mul, as the decompose rewrite writes SwiGLU.
Graph decomposed_swiglu() {
  Graph g;
  const TensorId gu = g.add_tensor({.name = "x0", .role = Role::input, .rows = 4, .cols = 14});
  const Operand t = g.whole(g.add_tensor({.name = "t", .rows = 4, .cols = 7}));
  const Operand y =
      g.whole(g.add_tensor({.name = "y", .role = Role::output, .rows = 4, .cols = 7}));
  g.add_op({"silu", operators::silu, {g.columns(gu, 0, 7)}, {t}, {}, ""});
  g.add_op({"mul", operators::mul, {t, g.columns(gu, 7, 7)}, {y}, {}, ""});
  return g;
}

TEST(Differentiate, WritesGradientsOfSlicesInPlaceOrConcatenatesThem) {
  const Graph whole = differentiate(one_op(operators::swiglu, {{4, 14}}, 4, 7));
  const Graph sliced = differentiate(decomposed_swiglu());
  const Graph joined = differentiate(decomposed_swiglu(), {.concatenate_slices = true});
  const NamedTensors inputs = random_inputs(whole, 3);
  const std::vector<double> want = run_reference(whole, inputs).at("dx0");
  EXPECT_EQ(disagreement(run_reference(sliced, inputs).at("dx0"), want, 1e-14), "");
  EXPECT_EQ(disagreement(run_reference(joined, inputs).at("dx0"), want, 1e-14), "");
  EXPECT_FALSE(sliced.find_op("concat_dx0").has_value());
  EXPECT_EQ(joined.op(joined.find_op("concat_dx0").value()).reads.size(), 2U);
}

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
