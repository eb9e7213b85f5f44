#include "model/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/error.h"
#include "model/operators.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using Vector = std::vector<double>;
constexpr double kExact = 1e-13;  // fp64 sums of at most a few hundred terms

TensorId add(Graph& g, const std::string& name, std::int64_t rows, std::int64_t cols,
             Role role = Role::input) {
  return g.add_tensor(
      {.name = name, .role = role, .dtype = Dtype::fp32, .rows = rows, .cols = cols});
}

// One operator over whole tensors; the result is named "y".
Vector compute(OpKind kind, const std::vector<Tensor>& shapes, const NamedTensors& inputs,
               std::int64_t rows, std::int64_t cols, const OpAttributes& attributes = {}) {
  Graph g;
  Op op{.name = "op", .kind = kind, .attributes = attributes};
  for (const Tensor& t : shapes) op.reads.push_back(g.whole(g.add_tensor(t)));
  op.writes.push_back(g.whole(add(g, "y", rows, cols, Role::output)));
  g.add_op(op);
  return run_reference(g, inputs).at("y");
}

Tensor shape(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return {.name = name, .role = Role::input, .rows = rows, .cols = cols};
}

Vector random_vector(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<double> normal;
  Vector v(static_cast<std::size_t>(count));
  for (double& e : v) e = normal(random);
  return v;
}

double at(const Vector& v, std::int64_t cols, std::int64_t row, std::int64_t col) {
  return v.at(static_cast<std::size_t>(row * cols + col));
}

double norm(const Vector& v) {
  double sum = 0;
  for (const double e : v) sum += e * e;
  return std::sqrt(sum);
}

TEST(ReferenceGemm, MultipliesByTheTransposedWeight) {
  // [1 2; 3 4; 5 6] times [1 0; 1 1]^T
  EXPECT_EQ(compute(OpKind::gemm, {shape("x", 3, 2), shape("w", 2, 2)},
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
        compute(OpKind::gemm, {shape("x", M, K), shape("w", N, K)}, {{"x", x}, {"w", w}}, M, N);
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
  const Vector y = compute(OpKind::rms_norm, {shape("x", 1, 37), shape("w", 1, 37)},
                           {{"x", random_vector(random, 37)}, {"w", Vector(37, 1.0)}}, 1, 37);
  EXPECT_NEAR(norm(y), std::sqrt(37.0), kExact);
}

TEST(ReferenceRmsNorm, AddsEpsilonToTheMeanSquare) {
  // Mean square 12.5, eps 3.5: r = 1/4.
  OpAttributes a;
  a.eps = 3.5;
  EXPECT_EQ(compute(OpKind::rms_norm, {shape("x", 1, 2), shape("w", 1, 2)},
                    {{"x", {3, 4}}, {"w", {2, 10}}}, 1, 2, a),
            (Vector{1.5, 10}));
}

TEST(ReferenceLayerNorm, HasMeanAndDeviationOfItsParameters) {
  std::mt19937 random(3);
  const Vector y = compute(
      OpKind::layer_norm, {shape("x", 1, 41), shape("w", 1, 41), shape("b", 1, 41)},
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
  OpAttributes a;
  a.head_width = 4;
  const std::vector<Tensor> shapes{shape("x", 1, 4), shape("cos", 1, 4), shape("sin", 1, 4)};
  NamedTensors in{{"x", {1, 2, 3, 4}}, {"cos", {0, 1, 0, 1}}, {"sin", {1, 0, 1, 0}}};
  EXPECT_EQ(compute(OpKind::rope, shapes, in, 1, 4, a), (Vector{-3, 2, 1, 4}));
  // Interleaved: the same pairs as adjacent columns, the tables permuted alike.
  a.pairs_interleaved = true;
  in = {{"x", {1, 3, 2, 4}}, {"cos", {0, 0, 1, 1}}, {"sin", {1, 1, 0, 0}}};
  EXPECT_EQ(compute(OpKind::rope, shapes, in, 1, 4, a), (Vector{-3, 1, 2, 4}));
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
  OpAttributes a;
  a.heads = a.kv_heads = a.batch = 1;
  a.head_width = d;
  a.q_tokens = a.kv_tokens = T;
  a.causal = true;
  a.scalar = 1.0;
  const TensorId x = add(g, "x", T, d);
  const TensorId cos = add(g, "cos", T, d, Role::table);
  const TensorId sin = add(g, "sin", T, d, Role::table);
  const TensorId turned = add(g, "turned", T, d, Role::activation);
  const TensorId scores = add(g, "scores", T, T, Role::output);
  g.add_op(
      {"rope", OpKind::rope, {g.whole(x), g.whole(cos), g.whole(sin)}, {g.whole(turned)}, a, ""});
  g.add_op({"scores",
            OpKind::attention_scores,
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
    const OpAttributes& a = g.op(g.find_op("softmax").value()).attributes;
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

// Copies rows [from, from + count) of each of `batch` sequences of `tokens` rows.
Vector rows_of(const Vector& v, std::int64_t cols, std::int64_t batch, std::int64_t tokens,
               std::int64_t from, std::int64_t count) {
  Vector result;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t t = from; t < from + count; ++t)
      for (std::int64_t c = 0; c < cols; ++c) result.push_back(at(v, cols, b * tokens + t, c));
  return result;
}

TEST(ReferenceDecode, OfTheLastTokensEqualsTheWholePrompt) {
  // A prompt of S tokens, and the same with its last T tokens decoded against a cache of the
  // others, must give the same outputs for them.
  std::mt19937 random(10);
  for (int round = 0; round < 100; ++round) {
    const ModelConfig c = test::random_model(random);
    const std::int64_t B = test::pick(random, 1, 3);
    const std::int64_t S = test::pick(random, 1, 9);
    const std::int64_t T = test::pick(random, 1, S);
    const std::int64_t kv_width = c.Hkv * c.d;
    const Graph prompt = build_block(c, test::forward(B, S));
    const Graph step = build_block(c, test::decode(B, T, S));
    const NamedTensors given = random_inputs(prompt, 77);
    const TensorValues all = run_reference(prompt, given);

    NamedTensors in = given;
    in["x"] = rows_of(given.at("x"), c.D, B, S, S - T, T);
    if (c.family == Family::llama) {
      in["cos"] = rows_of(given.at("cos"), c.d, 1, S, S - T, T);
      in["sin"] = rows_of(given.at("sin"), c.d, 1, S, S - T, T);
    }
    // The cache holds the keys and values of the earlier tokens, and rubbish in the rows to append.
    Vector keys;
    Vector cached_values;
    for (std::int64_t r = 0; r < B * S; ++r) {
      for (std::int64_t j = 0; j < kv_width; ++j) {
        const bool old = r % S < S - T;
        const double k = c.family == Family::llama
                             ? at(all.at("k_rot"), kv_width, r, j)
                             : at(all.at("qkv"), c.qkv_width(), r, c.H * c.d + j);
        const double v = at(all.at("qkv"), c.qkv_width(), r, (c.H + c.Hkv) * c.d + j);
        keys.push_back(old ? k : 1e6);
        cached_values.push_back(old ? v : 1e6);
      }
    }
    in["cache_k"] = keys;
    in["cache_v"] = cached_values;
    const TensorValues values = run_reference(step, in);
    const Vector want = rows_of(all.at("y"), c.D, B, S, S - T, T);
    ASSERT_EQ(disagreement(values.at("y"), want, 1e-12), "") << round;
  }
}

// x -> norm -> gemm in one graph, the deferred chain in another; same inputs by name.
struct SplitNorm {
  static constexpr std::int64_t M = 3, D = 300, N = 7;
  static Graph plain(bool layer) {
    Graph g;
    const TensorId x = add(g, "x", M, D);
    OpAttributes a;
    a.eps = 1e-5;
    std::vector<Operand> reads{g.whole(x), g.whole(add(g, "w_norm", 1, D, Role::weight))};
    if (layer) reads.push_back(g.whole(add(g, "b_norm", 1, D, Role::weight)));
    const TensorId xn = add(g, "xn", M, D, Role::activation);
    const TensorId w = add(g, "w", N, D, Role::weight);
    const TensorId y = add(g, "y", M, N, Role::output);
    g.add_op({"norm", layer ? OpKind::layer_norm : OpKind::rms_norm, reads, {g.whole(xn)}, a, ""});
    g.add_op({"gemm", OpKind::gemm, {g.whole(xn), g.whole(w)}, {g.whole(y)}, {}, ""});
    return g;
  }
  static Graph deferred(bool layer) {
    Graph g;
    const TensorId x = add(g, "x", M, D);
    OpAttributes a;
    a.eps = 1e-5;
    a.norm_width = D;
    const std::int64_t statistics = layer ? 2 : 1;
    const TensorId gamma = add(g, "w_norm", 1, D, Role::weight);
    const TensorId scaled = add(g, "scaled", M, D, Role::activation);
    const TensorId partials = add(g, "partials", M, 3 * statistics, Role::activation);
    const TensorId stats = add(g, "stats", M, statistics, Role::activation);
    const TensorId w = add(g, "w", N, D, Role::weight);
    const TensorId raw = add(g, "raw", M, N, Role::activation);
    const TensorId y = add(g, "y", M, N, Role::output);
    g.add_op({"gamma", OpKind::mul_cols, {g.whole(x), g.whole(gamma)}, {g.whole(scaled)}, {}, ""});
    g.add_op({"partial", OpKind::row_stats_partial, {g.whole(x)}, {g.whole(partials)}, a, ""});
    g.add_op({"finish", OpKind::row_stats_finish, {g.whole(partials)}, {g.whole(stats)}, a, ""});
    g.add_op({"gemm", OpKind::gemm, {g.whole(scaled), g.whole(w)}, {g.whole(raw)}, {}, ""});
    if (!layer) {
      g.add_op({"scale", OpKind::row_scale, {g.whole(raw), g.whole(stats)}, {g.whole(y)}, {}, ""});
      return g;
    }
    // wg = w gamma and wb = w beta by the same GEMM.
    const TensorId beta = add(g, "b_norm", 1, D, Role::weight);
    const TensorId wg = add(g, "wg", 1, N, Role::activation);
    const TensorId wb = add(g, "wb", 1, N, Role::activation);
    g.add_op({"wg", OpKind::gemm, {g.whole(gamma), g.whole(w)}, {g.whole(wg)}, {}, ""});
    g.add_op({"wb", OpKind::gemm, {g.whole(beta), g.whole(w)}, {g.whole(wb)}, {}, ""});
    g.add_op({"shift",
              OpKind::layer_norm_deferred,
              {g.whole(raw), g.whole(stats), g.whole(wg), g.whole(wb)},
              {g.whole(y)},
              {},
              ""});
    return g;
  }
};

TEST(ReferenceSplitNorm, EqualsTheNormBeforeTheGemm) {
  for (const bool layer : {false, true}) {
    const Graph plain = SplitNorm::plain(layer);
    const Graph deferred = SplitNorm::deferred(layer);
    for (const Op& op : deferred.ops()) ASSERT_TRUE(check_operands(deferred, op).empty());
    const NamedTensors in = random_inputs(plain, 5);
    const TensorValues want = run_reference(plain, in);
    const TensorValues got = run_reference(deferred, in);
    EXPECT_EQ(disagreement(got.at("y"), want.at("y"), 1e-12), "") << layer;
  }
}

TEST(ReferenceSplitNorm, NoticesAMissedPartial) {
  Graph g = SplitNorm::deferred(false);
  const Graph plain = SplitNorm::plain(false);
  const NamedTensors in = random_inputs(plain, 5);
  // When the finisher reads two of three partials
  g.op(g.find_op("finish").value()).reads[0].cols = 2;
  const TensorValues want = run_reference(plain, in);
  const TensorValues got = run_reference(g, in);
  EXPECT_NE(disagreement(got.at("y"), want.at("y"), 1e-3), "");
}

TEST(ReferencePrimitives, ComposeToRmsNorm) {
  std::mt19937 random(12);
  const std::int64_t M = 4;
  const std::int64_t D = 9;
  const NamedTensors in{{"x", random_vector(random, M * D)}, {"w", random_vector(random, D)}};
  Graph g;
  const TensorId x = add(g, "x", M, D);
  const TensorId w = add(g, "w", 1, D, Role::weight);
  const auto result = [&](const std::string& name, std::int64_t cols) {
    return g.whole(add(g, name, M, cols, Role::activation));
  };
  OpAttributes eps;
  eps.scalar = 1e-3;
  const Operand wide = result("wide", D);
  const Operand squares = result("squares", D);
  const Operand mean = result("mean", 1);
  const Operand shifted = result("shifted", 1);
  const Operand r = result("r", 1);
  const Operand scaled = result("scaled", D);
  const Operand narrow = result("narrow", D);
  const Operand y = result("y", D);
  g.add_op({"cast", OpKind::cast, {g.whole(x)}, {wide}, {}, ""});
  g.add_op({"square", OpKind::square, {wide}, {squares}, {}, ""});
  g.add_op({"mean", OpKind::row_mean, {squares}, {mean}, {}, ""});
  g.add_op({"eps", OpKind::add_scalar, {mean}, {shifted}, eps, ""});
  g.add_op({"rsqrt", OpKind::rsqrt, {shifted}, {r}, {}, ""});
  g.add_op({"scale", OpKind::mul_rows, {wide, r}, {scaled}, {}, ""});
  g.add_op({"narrow", OpKind::cast, {scaled}, {narrow}, {}, ""});
  g.add_op({"weight", OpKind::mul_cols, {narrow, g.whole(w)}, {y}, {}, ""});
  OpAttributes a;
  a.eps = 1e-3;
  const Vector want = compute(OpKind::rms_norm, {shape("x", M, D), shape("w", 1, D)}, in, M, D, a);
  const TensorValues got = run_reference(g, in);
  EXPECT_EQ(disagreement(got.at("y"), want, kExact), "");
}

TEST(ReferencePrimitives, ComposeToRope) {
  const std::int64_t M = 6;
  const std::int64_t width = 12;
  Graph g;
  OpAttributes a;
  a.head_width = 4;
  const Operand x = g.whole(add(g, "x", M, width));
  const Operand cos = g.whole(add(g, "cos", 3, 4, Role::table));
  const Operand sin = g.whole(add(g, "sin", 3, 4, Role::table));
  const auto result = [&](const std::string& name, std::int64_t cols) {
    return g.whole(add(g, name, M, cols, Role::activation));
  };
  const Operand direct = result("direct", width);
  const Operand x_cos = result("x_cos", width);
  const Operand negated = result("negated", width / 2);
  const Operand turned = result("turned", width);
  const Operand turned_sin = result("turned_sin", width);
  const Operand y = result("y", width);
  g.add_op({"rope", OpKind::rope, {x, cos, sin}, {direct}, a, ""});
  g.add_op({"mul_cos", OpKind::mul_table, {x, cos}, {x_cos}, a, ""});
  g.add_op({"negate", OpKind::negate_half, {x}, {negated}, a, ""});
  g.add_op({"concat", OpKind::concat_halves, {negated, x}, {turned}, a, ""});
  g.add_op({"mul_sin", OpKind::mul_table, {turned, sin}, {turned_sin}, a, ""});
  g.add_op({"add", OpKind::add, {x_cos, turned_sin}, {y}, a, ""});
  const TensorValues v = run_reference(g, random_inputs(g, 3));
  EXPECT_EQ(disagreement(v.at("y"), v.at("direct"), kExact), "");
}

TEST(ReferencePrimitives, ComposeToSwiglu) {
  Graph g;
  const TensorId gu = add(g, "gu", 3, 10);
  const Operand silu = g.whole(add(g, "silu", 3, 5, Role::activation));
  const Operand y = g.whole(add(g, "y", 3, 5, Role::output));
  const Operand direct = g.whole(add(g, "direct", 3, 5, Role::output));
  g.add_op({"swiglu", OpKind::swiglu, {g.whole(gu)}, {direct}, {}, ""});
  g.add_op({"silu", OpKind::silu, {g.columns(gu, 0, 5)}, {silu}, {}, ""});
  g.add_op({"mul", OpKind::mul, {silu, g.columns(gu, 5, 5)}, {y}, {}, ""});
  const TensorValues v = run_reference(g, random_inputs(g, 3));
  EXPECT_EQ(disagreement(v.at("y"), v.at("direct"), kExact), "");
}

TEST(ReferenceSwiglu, TakesAdjacentPairsWhenInterleaved) {
  OpAttributes a;
  const std::vector<Tensor> shapes{shape("gu", 1, 4)};
  const Vector apart = compute(OpKind::swiglu, shapes, {{"gu", {1, 2, 10, 20}}}, 1, 2, a);
  a.pairs_interleaved = true;
  const Vector adjacent = compute(OpKind::swiglu, shapes, {{"gu", {1, 10, 2, 20}}}, 1, 2, a);
  EXPECT_EQ(apart, adjacent);
  EXPECT_NEAR(apart[0], 10 / (1 + std::exp(-1.0)), kExact);
}

TEST(ReferenceGelu, HasKnownValues) {
  // Hand-worked: x/2·(1 + tanh(0.7978845608·(x + 0.044715 x³))) at 0, 1, -1, 3.
  const Vector y = compute(OpKind::gelu, {shape("x", 1, 4)}, {{"x", {0, 1, -1, 3}}}, 1, 4);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 0.841192, 1e-6);
  EXPECT_NEAR(y[2], -0.158808, 1e-6);
  EXPECT_NEAR(y[3], 2.996363, 1e-6);
}

TEST(ReferenceEmbedding, GathersRowsAndAddsPositions) {
  OpAttributes a;
  a.batch = 2;
  a.q_tokens = 2;
  a.kv_tokens = 3;
  // Two sequences of two new tokens at positions 1 and 2.
  const Vector y =
      compute(OpKind::embedding, {shape("ids", 4, 1), shape("w", 4, 2), shape("positions", 3, 2)},
              {{"ids", {3, 0, 1, 1}},
               {"w", {10, 11, 20, 21, 30, 31, 40, 41}},
               {"positions", {0, 0, 0.25, 0.25, 0.5, 0.5}}},
              4, 2, a);
  EXPECT_EQ(y, (Vector{40.25, 41.25, 10.5, 11.5, 20.25, 21.25, 20.5, 21.5}));
}

TEST(Reference, CrossEntropyIsTheLogSumExpBelowTheTarget) {
  // Three logits ln 1, ln 2, ln 5, shifted by 700 where exp would overflow: ln 8 below ln 2 or
  // ln 5.
  const double far = 700;
  const Vector x{std::log(1.0),       std::log(2.0),       std::log(5.0),
                 std::log(1.0) + far, std::log(2.0) + far, std::log(5.0) + far};
  const Vector loss = compute(OpKind::cross_entropy, {shape("x", 2, 3), shape("targets", 2, 1)},
                              {{"x", x}, {"targets", {1, 2}}}, 2, 1);
  EXPECT_NEAR(loss[0], std::log(8.0 / 2.0), 1e-14);
  EXPECT_NEAR(loss[1], std::log(8.0 / 5.0), 1e-12);
  // Its gradient: probabilities 1/8, 1/4, 5/8 less one in the target's column.
  const Vector dx =
      compute(OpKind::cross_entropy_backward,
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
  OpAttributes a;
  a.tile_cols = 2;
  const Vector x{0, 1, 2, 3, 4, -1, 5, 0.5, -2, 1};
  const Vector partials =
      compute(OpKind::cross_entropy_partial, {shape("x", 2, 5), shape("targets", 2, 1)},
              {{"x", x}, {"targets", {2, 4}}}, 2, 9, a);
  // Maxima, sums and targets of the three tiles of each row.
  const double e1 = std::exp(-1.0);
  const Vector want{
      1, 3, 4, 1 + e1, 1 + e1, 1, 0, 2, 0, 5, 0.5, 1, 1 + std::exp(-6.0), 1 + std::exp(-2.5),
      1, 0, 0, 1};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(partials[i], want[i], 1e-14) << i;
  const Vector loss = compute(OpKind::cross_entropy_finish, {shape("partials", 2, 9)},
                              {{"partials", partials}}, 2, 1, a);
  const Vector whole = compute(OpKind::cross_entropy, {shape("x", 2, 5), shape("targets", 2, 1)},
                               {{"x", x}, {"targets", {2, 4}}}, 2, 1);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(loss[i], whole[i], 1e-14) << i;
}

TEST(Reference, EmbeddingBackwardAddsTheRowsOfEachToken) {
  OpAttributes a;
  a.q_tokens = 2;
  const Vector dy{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(compute(OpKind::embedding_backward, {shape("dy", 4, 2), shape("ids", 4, 1)},
                    {{"dy", dy}, {"ids", {2, 0, 2, 2}}}, 4, 2, a),
            (Vector{3, 4, 0, 0, 13, 16, 0, 0}));
  // By position: two sequences of two tokens, a third position that no token has.
  EXPECT_EQ(compute(OpKind::embedding_backward, {shape("dy", 4, 2)}, {{"dy", dy}}, 3, 2, a),
            (Vector{6, 8, 10, 12, 0, 0}));
}

TEST(ReferenceBlock, GivesFiniteOutputsThatDependOnEveryInput) {
  for (const bool llama : {true, false}) {
    const Graph g =
        build_block(llama ? test::tiny_llama() : test::tiny_gpt(), test::decode(2, 2, 5));
    const NamedTensors in = random_inputs(g, 21);
    const TensorValues base = run_reference(g, in);
    ASSERT_EQ(disagreement(base.at("y"), base.at("y"), 0.0), "");
    for (const auto& [name, values] : in) {
      NamedTensors changed = in;
      // The first element of each is used: old cache rows, the first weight, the first input.
      changed[name][0] += 0.5;
      const TensorValues other = run_reference(g, changed);
      EXPECT_GT(relative_l2(other.at("y"), base.at("y")), 1e-9) << name;
    }
  }
}

TEST(RunReference, NamesAMissingInput) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  NamedTensors in = random_inputs(g, 1);
  in.erase("w_down");
  try {
    run_reference(g, in);
    FAIL() << "a missing input was accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().field, "w_down");
  }
}

TEST(RunReference, RefusesInputsOfTheWrongSize) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  NamedTensors in = random_inputs(g, 1);
  in["x"].pop_back();
  EXPECT_THROW(run_reference(g, in), InputError);
}

TEST(RunReference, NamesTensorAndIndexOfAValueThatIsNotFinite) {
  const Graph g = build_block(test::tiny_llama(), test::forward(1, 2));
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    NamedTensors in = random_inputs(g, 1);
    in["x"][23] = bad;
    try {
      run_reference(g, in);
      FAIL() << "the value was accepted";
    } catch (const InputError& e) {
      EXPECT_EQ(e.problem().field, "x[1, 3]");
    }
  }
}

TEST(RandomInputs, AreTheSameForTheSameNameAndDifferBetweenNamesAndSeeds) {
  const Graph prompt = build_block(test::tiny_llama(), test::forward(1, 3));
  const Graph step = build_block(test::tiny_llama(), test::decode(1, 3, 9));
  EXPECT_EQ(random_inputs(prompt, 1).at("w_qkv"), random_inputs(step, 1).at("w_qkv"));
  EXPECT_NE(random_inputs(prompt, 1).at("w_qkv"), random_inputs(prompt, 2).at("w_qkv"));
  EXPECT_NE(random_inputs(prompt, 1).at("w_norm1"), random_inputs(prompt, 1).at("w_norm2"));
}

TEST(RandomInputs, HaveOutliers) {
  const Graph g = build_block(test::tiny_llama(), test::forward(4, 8));
  const Vector x = random_inputs(g, 1).at("x");
  double largest = 0;
  for (const double e : x) largest = std::max(largest, std::abs(e));
  EXPECT_GT(largest, 20.0);
  EXPECT_LT(norm(x) / std::sqrt(static_cast<double>(x.size())), largest / 3);
}

TEST(Disagreement, AcceptsErrorsWithinTheToleranceOnly) {
  const Vector want{1, 2, 2};
  EXPECT_EQ(disagreement({1, 2, 2.003}, want, 1.01e-3), "");
  EXPECT_NE(disagreement({1, 2, 2.003}, want, 0.99e-3), "");
}

TEST(Disagreement, NeverAcceptsEmptyWork) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(disagreement({0, 0}, {0, 0}, 1), "");
  EXPECT_NE(disagreement({3, 3}, {3, 3}, 1), "");
  EXPECT_NE(disagreement({0, 0}, {1, 2}, 10), "");
  EXPECT_NE(disagreement({1, nan}, {1, 2}, 10), "");
  EXPECT_NE(disagreement({1, 2, 3}, {1, 2}, 10), "");
}

}  // namespace
}  // namespace fuseline
