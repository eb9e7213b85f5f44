// Every operator's gradient, alone, over random small shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
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
#include "tests/model/one_op.h"
#include "tests/model/random_experts.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using test::Input;
using test::one_op;
using test::pick;

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

}  // namespace
}  // namespace fuseline
