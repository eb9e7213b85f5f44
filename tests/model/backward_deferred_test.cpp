// A norm's gradient in the epilogue of the dgrad GEMM: row sums known beforehand from y and dy.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "model/backward.h"
#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"
#include "model/reference.h"
#include "tests/model/gradient_check.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

using test::pick;
constexpr double kEqual = 1e-10;  // fp64, the same sums in another order

struct DeferredSizes {
  std::int64_t M, D, N, tile;
};

DeferredSizes random_sizes(std::mt19937& random) {
  return {pick(random, 1, 9), pick(random, 2, 21), pick(random, 2, 30), pick(random, 1, 8)};
}

class Builder {
 public:
  Operand add(const std::string& name, std::int64_t rows, std::int64_t cols,
              Role role = Role::activation) {
    return graph.whole(graph.add_tensor(
        {.name = name, .role = role, .dtype = Dtype::fp32, .rows = rows, .cols = cols}));
  }
  void op(const std::string& name, OpKind kind, std::vector<Operand> reads, const Operand& write,
          const Attributes& attributes = {}) {
    graph.add_op({name, kind, std::move(reads), {write}, attributes, ""});
  }
  Operand at(const std::string& name) const { return graph.whole(graph.find_tensor(name).value()); }
  Graph graph;
};

// y = norm(h) W^T + b, and o = y + b when there is a bias; its own gradients are the reference.
Graph norm_and_gemm(const DeferredSizes& s, bool layer) {
  Builder b;
  const NormEps eps{1e-2};
  const Operand h = b.add("h", s.M, s.D, Role::input);
  const Operand gamma = b.add("w_gamma", 1, s.D, Role::weight);
  const Operand xn = b.add("xn", s.M, s.D);
  std::vector<Operand> reads{h, gamma};
  if (layer) reads.push_back(b.add("b_beta", 1, s.D, Role::weight));
  b.op("norm", layer ? operators::layer_norm : operators::rms_norm, reads, xn, eps);
  const Operand product = b.add("product", s.M, s.N);
  b.op("gemm", operators::gemm, {xn, b.add("w", s.N, s.D, Role::weight)}, product);
  b.op("bias", operators::bias_add, {product, b.add("b", 1, s.N, Role::weight)},
       b.add("y", s.M, s.N, Role::output));
  return b.graph;
}

PartialTile tiles(const DeferredSizes& s) { return {.rows = s.tile, .cols = s.tile}; }

// The deferred form over the same inputs: y and dy give c before the GEMM p = dy W.
Graph deferred(const DeferredSizes& s, bool layer) {
  Builder b;
  const std::int64_t sums = layer ? 2 : 1;
  const Operand dy = b.add("dy", s.M, s.N, Role::input);
  const Operand y = b.add("y", s.M, s.N, Role::input);
  const Operand h = b.add("h", s.M, s.D, Role::input);
  const Operand gamma = b.add("w_gamma", 1, s.D, Role::weight);
  const Operand stats = b.add("norm_stats", s.M, sums, Role::input);
  const Operand residual = b.add("dres", s.M, s.D, Role::input);

  // What does not depend on x̂ is not part of the projection: the bias, and W beta.
  const Operand shift = b.add("shift", 1, s.N, Role::weight);
  std::vector<Operand> reads{dy, y, shift};
  if (layer) reads.push_back(b.add("w_times_gamma", 1, s.N, Role::weight));
  const Operand partials = b.add("partials", s.M, sums * ceil_div(s.N, s.tile));
  b.op("partial", operators::row_dot_partial, reads, partials, tiles(s));
  const Operand c = b.add("c", s.M, sums);
  b.op("finish", operators::row_dot_finish, {partials}, c, RowStatistics{.norm_width = s.D});

  const GemmLayout nn{.b_is_kn = true};
  const Operand p = b.add("p", s.M, s.D);
  b.op("dgrad", operators::gemm, {dy, b.add("w", s.N, s.D, Role::weight)}, p, nn);
  b.op("norm", operators::norm_backward_deferred, {p, h, gamma, stats, c, residual},
       b.add("dh", s.M, s.D, Role::output));

  const Operand columns = b.add("columns", s.D, ceil_div(s.M, s.tile));
  b.op("dgamma_partial", operators::col_stats_partial, {p, h, stats}, columns, tiles(s));
  b.op("dgamma", operators::col_stats_finish, {columns}, b.add("dw_gamma", 1, s.D, Role::output));
  const Operand bias_columns = b.add("bias_columns", s.N, ceil_div(s.M, s.tile));
  b.op("db_partial", operators::col_stats_partial, {dy}, bias_columns, tiles(s));
  b.op("db", operators::col_stats_finish, {bias_columns}, b.add("db", 1, s.N, Role::output));
  return b.graph;
}

std::vector<double> product_of(const std::vector<double>& w, const std::vector<double>& v) {
  std::vector<double> result(w.size() / v.size());
  for (std::size_t n = 0; n < result.size(); ++n)
    for (std::size_t d = 0; d < v.size(); ++d) result[n] += w[n * v.size() + d] * v[d];
  return result;
}

class DeferredNorm : public testing::TestWithParam<bool> {};

TEST_P(DeferredNorm, GivesTheGradientsOfThePlainNorm) {
  const bool layer = GetParam();
  std::mt19937 random(41);
  for (int round = 0; round < 60; ++round) {
    const DeferredSizes s = random_sizes(random);
    // Given the plain joint graph's values.
    const Graph plain = differentiate(norm_and_gemm(s, layer));
    NamedTensors inputs = test::outlier_inputs(plain, random);
    const TensorValues values = run_reference(plain, inputs);

    // When the norm's gradient is formed from row sums of y and dy.
    const Graph form = deferred(s, layer);
    inputs["y"] = values.at("y");
    inputs["norm_stats"] = values.at("norm_stats");
    inputs["shift"] = inputs.at("b");
    if (layer) {
      const std::vector<double> w_beta = product_of(inputs.at("w"), inputs.at("b_beta"));
      for (std::size_t n = 0; n < w_beta.size(); ++n) inputs["shift"][n] += w_beta[n];
      inputs["w_times_gamma"] = product_of(inputs.at("w"), inputs.at("w_gamma"));
    }
    std::vector<double>& residual = inputs["dres"];
    residual.resize(values.at("dh").size());
    std::normal_distribution<double> normal;
    for (double& r : residual) r = normal(random);
    const TensorValues got = run_reference(form, inputs);

    // Then dh (plus the residual's), dγ and db agree.
    std::vector<double> want = values.at("dh");
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += residual[i];
    ASSERT_EQ(disagreement(got.at("dh"), want, kEqual), "") << "round " << round;
    ASSERT_EQ(disagreement(got.at("dw_gamma"), values.at("dw_gamma"), kEqual), "");
    ASSERT_EQ(disagreement(got.at("db"), values.at("db"), kEqual), "");
    // And the statistic that the epilogue does not compute matters: without c the result is wrong.
    ASSERT_GT(relative_l2(values.at("dh"), got.at("p")), 1e-3);
  }
}

INSTANTIATE_TEST_SUITE_P(Backward, DeferredNorm, testing::Values(false, true),
                         [](const auto& layer) {
                           return std::string(layer.param ? "layer_norm" : "rms_norm");
                         });

TEST(RowDot, OfSwigluIsTheProjectionOfItsInput) {
  // Σ (G·dG + U·dU) over a row is ⟨y, dy⟩ of the GEMM that made (G, U), by tiles of three columns.
  Builder b;
  const PartialTile tile{.cols = 3};
  const RowStatistics width{.norm_width = 4};
  const Operand dy = b.add("dy", 1, 4, Role::input);
  const Operand y = b.add("y", 1, 4, Role::input);
  const Operand partials = b.add("partials", 1, 2);
  b.op("partial", operators::row_dot_partial, {dy, y}, partials, tile);
  b.op("finish", operators::row_dot_finish, {partials}, b.add("c", 1, 1, Role::output), width);
  const TensorValues v = run_reference(b.graph, {{"dy", {1, 2, 3, 4}}, {"y", {5, 6, 7, 8}}});
  EXPECT_EQ(v.at("partials"), (std::vector<double>{5 + 12 + 21, 32}));
  EXPECT_EQ(v.at("c"), std::vector<double>{70.0 / 4});
  EXPECT_EQ(flops(b.graph, b.graph.ops()[0]), Flops(8));
  EXPECT_EQ(flops(b.graph, b.graph.ops()[1]), Flops(3));
}

TEST(SwigluBackward, RecomputesTheForwardOutput) {
  Builder b;
  const Operand gu = b.add("gu", 3, 10, Role::input);
  const Operand act = b.add("act", 3, 5, Role::output);
  const Operand again = b.add("again", 3, 5, Role::output);
  b.op("swiglu", operators::swiglu, {gu}, act);
  b.graph.add_op({"back",
                  operators::swiglu_backward,
                  {b.add("dact", 3, 5, Role::input), gu},
                  {b.add("dgu", 3, 10, Role::output), again},
                  {},
                  ""});
  const TensorValues v = run_reference(b.graph, random_inputs(b.graph, 43));
  EXPECT_EQ(disagreement(v.at("again"), v.at("act"), 1e-15), "");
  EXPECT_EQ(flops(b.graph, b.graph.ops()[1]), Flops(11 * 15));
  EXPECT_EQ(bytes_written(b.graph, b.graph.ops()[1]), Bytes(4 * (30 + 15)));
}

TEST(RopeBackward, UndoesTheRotation) {
  for (const bool interleaved : {false, true}) {
    Builder b;
    const Pairs heads{.head_width = 6, .interleaved = interleaved};
    const Operand cos = b.add("cos", 4, 6, Role::table);
    const Operand sin = b.add("sin", 4, 6, Role::table);
    const Operand x = b.add("x", 8, 12, Role::input);
    const Operand turned = b.add("turned", 8, 12);
    b.op("rope", operators::rope, {x, cos, sin}, turned, heads);
    b.op("back", operators::rope_backward, {turned, cos, sin}, b.add("y", 8, 12, Role::output),
         heads);
    NamedTensors inputs = random_inputs(b.graph, 47);
    if (interleaved)  // the columns of a pair share an angle
      for (const char* table : {"cos", "sin"})
        for (std::size_t i = 0; i < inputs[table].size(); i += 2)
          inputs[table][i + 1] = inputs[table][i] =
              table[0] == 'c' ? std::cos(static_cast<double>(i)) : std::sin(static_cast<double>(i));
    const TensorValues v = run_reference(b.graph, inputs);
    EXPECT_EQ(disagreement(v.at("y"), v.at("x"), 1e-14), "");
    EXPECT_GT(relative_l2(v.at("turned"), v.at("x")), 1e-2);
  }
}

}  // namespace
}  // namespace fuseline
