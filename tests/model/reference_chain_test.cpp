// Chains of operators in fp64: decode, deferred norms, primitives that compose to operators.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "model/blocks/block.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "tests/model/reference_support.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using namespace test::reference;

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
    if (c.is_all("llama")) {
      in["cos"] = rows_of(given.at("cos"), c.d, 1, S, S - T, T);
      in["sin"] = rows_of(given.at("sin"), c.d, 1, S, S - T, T);
    }
    // The cache holds the keys and values of the earlier tokens, and rubbish in the rows to append.
    Vector keys;
    Vector cached_values;
    for (std::int64_t r = 0; r < B * S; ++r) {
      for (std::int64_t j = 0; j < kv_width; ++j) {
        const bool old = r % S < S - T;
        const double k = c.is_all("llama") ? at(all.at("k_rot"), kv_width, r, j)
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
    const NormEps a{1e-5};
    std::vector<Operand> reads{g.whole(x), g.whole(add(g, "w_norm", 1, D, Role::weight))};
    if (layer) reads.push_back(g.whole(add(g, "b_norm", 1, D, Role::weight)));
    const TensorId xn = add(g, "xn", M, D, Role::activation);
    const TensorId w = add(g, "w", N, D, Role::weight);
    const TensorId y = add(g, "y", M, N, Role::output);
    g.add_op(
        {"norm", layer ? operators::layer_norm : operators::rms_norm, reads, {g.whole(xn)}, a, ""});
    g.add_op({"gemm", operators::gemm, {g.whole(xn), g.whole(w)}, {g.whole(y)}, {}, ""});
    return g;
  }
  static Graph deferred(bool layer) {
    Graph g;
    const TensorId x = add(g, "x", M, D);
    const RowStatistics a{.norm_width = D, .eps = 1e-5};
    const std::int64_t statistics = layer ? 2 : 1;
    const TensorId gamma = add(g, "w_norm", 1, D, Role::weight);
    const TensorId scaled = add(g, "scaled", M, D, Role::activation);
    const TensorId partials = add(g, "partials", M, 3 * statistics, Role::activation);
    const TensorId stats = add(g, "stats", M, statistics, Role::activation);
    const TensorId w = add(g, "w", N, D, Role::weight);
    const TensorId raw = add(g, "raw", M, N, Role::activation);
    const TensorId y = add(g, "y", M, N, Role::output);
    g.add_op(
        {"gamma", operators::mul_cols, {g.whole(x), g.whole(gamma)}, {g.whole(scaled)}, {}, ""});
    g.add_op({"partial", operators::row_stats_partial, {g.whole(x)}, {g.whole(partials)}, {}, ""});
    g.add_op({"finish", operators::row_stats_finish, {g.whole(partials)}, {g.whole(stats)}, a, ""});
    g.add_op({"gemm", operators::gemm, {g.whole(scaled), g.whole(w)}, {g.whole(raw)}, {}, ""});
    if (!layer) {
      g.add_op(
          {"scale", operators::row_scale, {g.whole(raw), g.whole(stats)}, {g.whole(y)}, {}, ""});
      return g;
    }
    // wg = w gamma and wb = w beta by the same GEMM.
    const TensorId beta = add(g, "b_norm", 1, D, Role::weight);
    const TensorId wg = add(g, "wg", 1, N, Role::activation);
    const TensorId wb = add(g, "wb", 1, N, Role::activation);
    g.add_op({"wg", operators::gemm, {g.whole(gamma), g.whole(w)}, {g.whole(wg)}, {}, ""});
    g.add_op({"wb", operators::gemm, {g.whole(beta), g.whole(w)}, {g.whole(wb)}, {}, ""});
    g.add_op({"shift",
              operators::layer_norm_deferred,
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
  const Scalar eps{1e-3};
  const Operand wide = result("wide", D);
  const Operand squares = result("squares", D);
  const Operand mean = result("mean", 1);
  const Operand shifted = result("shifted", 1);
  const Operand r = result("r", 1);
  const Operand scaled = result("scaled", D);
  const Operand narrow = result("narrow", D);
  const Operand y = result("y", D);
  g.add_op({"cast", operators::cast, {g.whole(x)}, {wide}, {}, ""});
  g.add_op({"square", operators::square, {wide}, {squares}, {}, ""});
  g.add_op({"mean", operators::row_mean, {squares}, {mean}, {}, ""});
  g.add_op({"eps", operators::add_scalar, {mean}, {shifted}, eps, ""});
  g.add_op({"rsqrt", operators::rsqrt, {shifted}, {r}, {}, ""});
  g.add_op({"scale", operators::mul_rows, {wide, r}, {scaled}, {}, ""});
  g.add_op({"narrow", operators::cast, {scaled}, {narrow}, {}, ""});
  g.add_op({"weight", operators::mul_cols, {narrow, g.whole(w)}, {y}, {}, ""});
  const NormEps a{1e-3};
  const Vector want =
      compute(operators::rms_norm, {shape("x", M, D), shape("w", 1, D)}, in, M, D, a);
  const TensorValues got = run_reference(g, in);
  EXPECT_EQ(disagreement(got.at("y"), want, kExact), "");
}

TEST(ReferencePrimitives, ComposeToRope) {
  const std::int64_t M = 6;
  const std::int64_t width = 12;
  Graph g;
  const Halves halves{.head_width = 4};
  const Pairs pairs{.head_width = 4};
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
  g.add_op({"rope", operators::rope, {x, cos, sin}, {direct}, pairs, ""});
  g.add_op({"mul_cos", operators::mul_table, {x, cos}, {x_cos}, {}, ""});
  g.add_op({"negate", operators::negate_half, {x}, {negated}, halves, ""});
  g.add_op({"concat", operators::concat_halves, {negated, x}, {turned}, halves, ""});
  g.add_op({"mul_sin", operators::mul_table, {turned, sin}, {turned_sin}, {}, ""});
  g.add_op({"add", operators::add, {x_cos, turned_sin}, {y}, {}, ""});
  const TensorValues v = run_reference(g, random_inputs(g, 3));
  EXPECT_EQ(disagreement(v.at("y"), v.at("direct"), kExact), "");
}

TEST(ReferencePrimitives, ComposeToSwiglu) {
  Graph g;
  const TensorId gu = add(g, "gu", 3, 10);
  const Operand silu = g.whole(add(g, "silu", 3, 5, Role::activation));
  const Operand y = g.whole(add(g, "y", 3, 5, Role::output));
  const Operand direct = g.whole(add(g, "direct", 3, 5, Role::output));
  g.add_op({"swiglu", operators::swiglu, {g.whole(gu)}, {direct}, {}, ""});
  g.add_op({"silu", operators::silu, {g.columns(gu, 0, 5)}, {silu}, {}, ""});
  g.add_op({"mul", operators::mul, {silu, g.columns(gu, 5, 5)}, {y}, {}, ""});
  const TensorValues v = run_reference(g, random_inputs(g, 3));
  EXPECT_EQ(disagreement(v.at("y"), v.at("direct"), kExact), "");
}

}  // namespace
}  // namespace fuseline
