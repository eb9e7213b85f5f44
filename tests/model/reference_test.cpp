#include "model/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/reference_support.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using namespace test::reference;

TEST(ReferenceGemm, MultipliesByTheTransposedWeight) {
  // [1 2; 3 4; 5 6] times [1 0; 1 1]^T
  EXPECT_EQ(compute(operators::gemm, {shape("x", 3, 2), shape("w", 2, 2)},
                    {{"x", {1, 2, 3, 4, 5, 6}}, {"w", {1, 0, 1, 1}}}, 3, 2),
            (Vector{1, 3, 3, 7, 5, 11}));
}

TEST(ReferenceGemm, AgreesWithTheSumForOddSizes) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const std::int64_t M = test::pick(random, 1, 11);
    const std::int64_t N = test::pick(random, 1, 11);
    const std::int64_t K = test::pick(random, 1, 11);
    const Vector x = random_vector(random, M * K);
    const Vector w = random_vector(random, N * K);
    const Vector y =
        compute(operators::gemm, {shape("x", M, K), shape("w", N, K)}, {{"x", x}, {"w", w}}, M, N);
    for (std::int64_t m = 0; m < M; ++m) {
      for (std::int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < K; ++k) sum += at(x, K, m, k) * at(w, K, n, k);
        ASSERT_NEAR(at(y, N, m, n), sum, kExact);
      }
    }
  }
}

TEST(ReferenceRmsNorm, HasUnitRootMeanSquareWithUnitWeight) {
  std::mt19937 random(2);
  const Vector y = compute(operators::rms_norm, {shape("x", 1, 37), shape("w", 1, 37)},
                           {{"x", random_vector(random, 37)}, {"w", Vector(37, 1.0)}}, 1, 37);
  EXPECT_NEAR(norm(y), std::sqrt(37.0), kExact);
}

TEST(ReferenceRmsNorm, AddsEpsilonToTheMeanSquare) {
  // Mean square 12.5, eps 3.5: r = 1/4.
  const NormEps a{3.5};
  EXPECT_EQ(compute(operators::rms_norm, {shape("x", 1, 2), shape("w", 1, 2)},
                    {{"x", {3, 4}}, {"w", {2, 10}}}, 1, 2, a),
            (Vector{1.5, 10}));
}

TEST(ReferenceLayerNorm, HasMeanAndDeviationOfItsParameters) {
  std::mt19937 random(3);
  const Vector y = compute(
      operators::layer_norm, {shape("x", 1, 41), shape("w", 1, 41), shape("b", 1, 41)},
      {{"x", random_vector(random, 41)}, {"w", Vector(41, 3.0)}, {"b", Vector(41, 7.0)}}, 1, 41);
  double mean = 0;
  for (const double e : y) mean += e / 41;
  double variance = 0;
  for (const double e : y) variance += (e - mean) * (e - mean) / 41;
  EXPECT_NEAR(mean, 7.0, kExact);
  EXPECT_NEAR(variance, 9.0, 1e-12);
}

TEST(ReferenceRope, RotatesByTheTablesAngle) {
  // A quarter turn takes (a, b) to (-b, a); pairs are columns j and j + d/2.
  Pairs a{.head_width = 4};
  const std::vector<Tensor> shapes{shape("x", 1, 4), shape("cos", 1, 4), shape("sin", 1, 4)};
  NamedTensors in{{"x", {1, 2, 3, 4}}, {"cos", {0, 1, 0, 1}}, {"sin", {1, 0, 1, 0}}};
  EXPECT_EQ(compute(operators::rope, shapes, in, 1, 4, a), (Vector{-3, 2, 1, 4}));
  // Interleaved: the same pairs as adjacent columns, the tables permuted alike.
  a.interleaved = true;
  in = {{"x", {1, 3, 2, 4}}, {"cos", {0, 0, 1, 1}}, {"sin", {1, 1, 0, 0}}};
  EXPECT_EQ(compute(operators::rope, shapes, in, 1, 4, a), (Vector{-3, 1, 2, 4}));
}

TEST(ReferenceRope, PreservesTheNormOfEveryHeadAndUsesTheRowsPosition) {
  // Given the block's own tables, two sequences, and the same vector in all rows.
  ModelConfig c = test::tiny_llama();
  const Graph g = build_block(c, test::forward(2, 5));
  const TensorValues v = run_reference(g, random_inputs(g, 4));
  const Vector& qkv = v.at("qkv");
  const Vector& q = v.at("q_rot");
  const std::int64_t width = c.H * c.d;
  for (std::int64_t m = 0; m < 10; ++m) {
    for (std::int64_t h = 0; h < c.H; ++h) {
      double before = 0;
      double after = 0;
      double moved = 0;
      for (std::int64_t j = h * c.d; j < (h + 1) * c.d; ++j) {
        const double x = at(qkv, c.qkv_width(), m, j);
        const double y = at(q, width, m, j);
        before += x * x;
        after += y * y;
        moved += std::abs(x - y);
      }
      ASSERT_NEAR(after / before, 1.0, kExact);
      ASSERT_GT(moved, 0);
    }
  }
  // Row 5 is token 0 of the second sequence: it takes the first row of the tables.
  const Vector& cos = v.at("cos");
  const Vector& sin = v.at("sin");
  EXPECT_NEAR(at(q, width, 5, 0),
              at(qkv, c.qkv_width(), 5, 0) * cos[0] - at(qkv, c.qkv_width(), 5, 3) * sin[0],
              kExact);
}

TEST(ReferenceAttention, ScoresOfRotatedVectorsDependOnDistanceOnly) {
  // Given one head, q = k the same vector at every position, and angles proportional to the
  // position.
  Graph g;
  const std::int64_t T = 6;
  const std::int64_t d = 8;
  AttentionShape a;
  a.heads = a.kv_heads = a.batch = 1;
  a.head_width = d;
  a.q_tokens = a.kv_tokens = T;
  a.causal = true;
  a.scale = 1.0;
  const TensorId x = add(g, "x", T, d);
  const TensorId cos = add(g, "cos", T, d, Role::table);
  const TensorId sin = add(g, "sin", T, d, Role::table);
  const TensorId turned = add(g, "turned", T, d, Role::activation);
  const TensorId scores = add(g, "scores", T, T, Role::output);
  g.add_op({"rope",
            operators::rope,
            {g.whole(x), g.whole(cos), g.whole(sin)},
            {g.whole(turned)},
            Pairs{.head_width = d},
            ""});
  g.add_op({"scores",
            operators::attention_scores,
            {g.whole(turned), g.whole(turned)},
            {g.whole(scores)},
            a,
            ""});
  NamedTensors in = random_inputs(g, 8);
  for (std::size_t i = 0; i < in["x"].size(); ++i) in["x"][i] = in["x"][i % d];
  // Then every diagonal of the visible triangle is constant, and masked entries are 0.
  const TensorValues values = run_reference(g, in);
  const Vector& s = values.at("scores");
  for (std::int64_t i = 1; i < T; ++i)
    for (std::int64_t j = 1; j <= i; ++j)
      EXPECT_NEAR(at(s, T, i, j) / at(s, T, i - 1, j - 1), 1.0, 1e-12);
  EXPECT_NE(at(s, T, 3, 3), at(s, T, 3, 2));
  EXPECT_EQ(at(s, T, 2, 3), 0);
}

TEST(ReferenceAttention, ProbabilitiesOfVisibleKeysSumToOne) {
  std::mt19937 random(6);
  for (int round = 0; round < 100; ++round) {
    const ModelConfig c = test::random_model(random);
    const Workload w = test::random_work(random);
    const Graph g = build_block(c, w);
    const TensorValues values = run_reference(g, random_inputs(g, static_cast<unsigned>(round)));
    const Tensor& t = g.tensor(g.find_tensor("probs").value());
    std::int64_t positive = 0;
    for (std::int64_t r = 0; r < t.rows; ++r) {
      double sum = 0;
      for (std::int64_t s = 0; s < t.cols; ++s) {
        sum += at(values.at("probs"), t.cols, r, s);
        positive += at(values.at("probs"), t.cols, r, s) > 0 ? 1 : 0;
      }
      ASSERT_NEAR(sum, 1.0, kExact);
    }
    const auto& a = g.op(g.find_op("softmax").value()).attributes.as<AttentionShape>();
    ASSERT_LE(positive, visible_pairs(a) * a.batch * a.heads);
  }
}

TEST(ReferenceAttention, OfTheFirstTokenIsItsOwnValue) {
  const ModelConfig c = test::tiny_llama();
  const Graph g = build_block(c, test::forward(2, 4));
  const TensorValues v = run_reference(g, random_inputs(g, 9));
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < c.H; ++h) {
      for (std::int64_t j = 0; j < c.d; ++j) {
        // Heads 0 and 1 share key/value head 0.
        const std::int64_t v_column = (c.H + c.Hkv) * c.d + h / 2 * c.d + j;
        EXPECT_DOUBLE_EQ(at(v.at("attn"), c.H * c.d, b * 4, h * c.d + j),
                         at(v.at("qkv"), c.qkv_width(), b * 4, v_column));
      }
    }
  }
}

TEST(ReferenceSwiglu, TakesAdjacentPairsWhenInterleaved) {
  Pairs a;
  const std::vector<Tensor> shapes{shape("gu", 1, 4)};
  const Vector apart = compute(operators::swiglu, shapes, {{"gu", {1, 2, 10, 20}}}, 1, 2, a);
  a.interleaved = true;
  const Vector adjacent = compute(operators::swiglu, shapes, {{"gu", {1, 10, 2, 20}}}, 1, 2, a);
  EXPECT_EQ(apart, adjacent);
  EXPECT_NEAR(apart[0], 10 / (1 + std::exp(-1.0)), kExact);
}

TEST(ReferenceGelu, HasKnownValues) {
  // Hand-worked: x/2·(1 + tanh(0.7978845608·(x + 0.044715 x³))) at 0, 1, -1, 3.
  const Vector y = compute(operators::gelu, {shape("x", 1, 4)}, {{"x", {0, 1, -1, 3}}}, 1, 4);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 0.841192, 1e-6);
  EXPECT_NEAR(y[2], -0.158808, 1e-6);
  EXPECT_NEAR(y[3], 2.996363, 1e-6);
}

TEST(ReferenceEmbedding, GathersRowsAndAddsPositions) {
  const Positions a{.tokens = 2};
  // Two sequences of two new tokens, whose positions are the table's two rows.
  const Vector y = compute(operators::embedding,
                           {shape("ids", 4, 1), shape("w", 4, 2), shape("positions", 2, 2)},
                           {{"ids", {3, 0, 1, 1}},
                            {"w", {10, 11, 20, 21, 30, 31, 40, 41}},
                            {"positions", {0.25, 0.25, 0.5, 0.5}}},
                           4, 2, a);
  EXPECT_EQ(y, (Vector{40.25, 41.25, 10.5, 11.5, 20.25, 21.25, 20.5, 21.5}));
}

TEST(Reference, CrossEntropyIsTheLogSumExpBelowTheTarget) {
  // Three logits ln 1, ln 2, ln 5, shifted by 700 where exp would overflow: ln 8 below ln 2 or
  // ln 5.
  const double far = 700;
  const Vector x{std::log(1.0),       std::log(2.0),       std::log(5.0),
                 std::log(1.0) + far, std::log(2.0) + far, std::log(5.0) + far};
  const Vector loss = compute(operators::cross_entropy, {shape("x", 2, 3), shape("targets", 2, 1)},
                              {{"x", x}, {"targets", {1, 2}}}, 2, 1);
  EXPECT_NEAR(loss[0], std::log(8.0 / 2.0), 1e-14);
  EXPECT_NEAR(loss[1], std::log(8.0 / 5.0), 1e-12);
  // Its gradient: probabilities 1/8, 1/4, 5/8 less one in the target's column.
  const Vector dx =
      compute(operators::cross_entropy_backward,
              {shape("dloss", 2, 1), shape("x", 2, 3), shape("targets", 2, 1), shape("lse", 2, 1)},
              {{"dloss", {1, 8}},
               {"x", x},
               {"targets", {1, 2}},
               {"lse", {std::log(8.0), std::log(8.0) + far}}},
              2, 3);
  const Vector want{0.125, -0.75, 0.625, 1, 2, -3};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(dx[i], want[i], 1e-11) << i;
}

TEST(Reference, CrossEntropyByTilesJoinsToTheWhole) {
  const PartialTile a{.cols = 2};
  const Vector x{0, 1, 2, 3, 4, -1, 5, 0.5, -2, 1};
  const Vector partials =
      compute(operators::cross_entropy_partial, {shape("x", 2, 5), shape("targets", 2, 1)},
              {{"x", x}, {"targets", {2, 4}}}, 2, 9, a);
  // Maxima, sums and targets of the three tiles of each row.
  const double e1 = std::exp(-1.0);
  const Vector want{
      1, 3, 4, 1 + e1, 1 + e1, 1, 0, 2, 0, 5, 0.5, 1, 1 + std::exp(-6.0), 1 + std::exp(-2.5),
      1, 0, 0, 1};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(partials[i], want[i], 1e-14) << i;
  const Vector loss = compute(operators::cross_entropy_finish, {shape("partials", 2, 9)},
                              {{"partials", partials}}, 2, 1);
  const Vector whole = compute(operators::cross_entropy, {shape("x", 2, 5), shape("targets", 2, 1)},
                               {{"x", x}, {"targets", {2, 4}}}, 2, 1);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(loss[i], whole[i], 1e-14) << i;
}

TEST(Reference, EmbeddingBackwardAddsTheRowsOfEachToken) {
  const Positions a{.tokens = 2};
  const Vector dy{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(compute(operators::embedding_backward, {shape("dy", 4, 2), shape("ids", 4, 1)},
                    {{"dy", dy}, {"ids", {2, 0, 2, 2}}}, 4, 2, a),
            (Vector{3, 4, 0, 0, 13, 16, 0, 0}));
  // By position: two sequences of two tokens, a third position that no token has.
  EXPECT_EQ(compute(operators::embedding_backward, {shape("dy", 4, 2)}, {{"dy", dy}}, 3, 2, a),
            (Vector{6, 8, 10, 12, 0, 0}));
}

}  // namespace
}  // namespace fuseline
