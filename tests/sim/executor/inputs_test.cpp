#include "sim/executor/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "model/prepare.h"
#include "sim/executor/execute.h"
#include "sim/executor/reference_fast.h"
#include "tests/model/plan_support.h"
#include "tests/model/scan_support.h"
#include "tests/sim/executor/executor_support.h"
#include "tests/sim/shipped_sizes.h"

namespace fuseline::executor {
namespace {

bool equal(const Storage& a, const Storage& b) {
  return a.type() == b.type() && a.rows() == b.rows() && a.cols() == b.cols() &&
         std::equal(a.at(0, 0), a.at(0, 0) + a.bytes().value(), b.at(0, 0));
}

TEST(RandomStorage, DependsOnSeedNameAndShapeOnly) {
  const Graph block = build_block(test::tiny_llama(), test::forward(2, 5));
  const Inputs one = random_storage(block, 1, {});
  const Inputs threads = random_storage(block, 1, {.threads = 4, .short_loops_too = true});
  const Inputs other = random_storage(block, 2, {});
  ASSERT_TRUE(one.contains("x"));
  for (const auto& [name, storage] : one) EXPECT_TRUE(equal(*storage, *threads.at(name))) << name;
  EXPECT_FALSE(equal(*one.at("x"), *other.at("x")));
  EXPECT_FALSE(equal(*one.at("w_norm1"), *one.at("w_norm2")));
  // The same tensor in another graph is the same.
  const Graph longer = build_block(test::tiny_llama(), test::forward(2, 9));
  EXPECT_TRUE(equal(*one.at("w_qkv"), *random_storage(longer, 1, {}).at("w_qkv")));
}

TEST(RandomStorage, HasOutlierColumnsAndUnitVariance) {
  ModelConfig config = test::tiny_llama();
  config.D = 200;
  const Graph block = build_block(config, test::forward(1, 400));
  const Inputs inputs = random_storage(block, 5, {});
  const std::vector<double> x = to_doubles(*inputs.at("x"));
  double usual = 0, outlier = 0;
  for (std::size_t i = 0; i < x.size(); ++i) (i % 20 == 10 ? outlier : usual) += x[i] * x[i];
  EXPECT_NEAR(usual / (static_cast<double>(x.size()) * 0.95), 1.0, 0.03);
  EXPECT_NEAR(outlier / (static_cast<double>(x.size()) * 0.05), 400.0, 40.0);
}

// The conditioning of a diffusion model is normalised by nothing.
TEST(RandomStorage, OnlyStreamsHaveOutlierColumns) {
  ModelConfig config = test::sized("mmdit", false);
  config.D = 200;
  const Graph block = build_block(config, test::forward(50, 2));
  const Inputs inputs = random_storage(block, 5, {});
  const auto square_of_outliers = [&](const char* name) {
    const std::vector<double> values = to_doubles(*inputs.at(name));
    double sum = 0;
    for (std::size_t i = 10; i < values.size(); i += 20) sum += values[i] * values[i];
    return sum * 20 / static_cast<double>(values.size());
  };
  EXPECT_NEAR(square_of_outliers("x"), 400.0, 80.0);
  EXPECT_NEAR(square_of_outliers("e"), 400.0, 80.0);
  EXPECT_NEAR(square_of_outliers("c"), 1.0, 0.25);
}

// A scan with rates above 0 would leave no finite number behind some hundred tokens.
TEST(RandomStorage, RatesOfScansAreBelowZero) {
  const test::ScanCase c{.shape = {6, 2, 5, 7, 3, 11, 4}};
  for (const bool of_columns : {false, true}) {
    const Inputs inputs = random_storage(test::selective_graph(c, of_columns), 3, {});
    const std::vector<double> rates = to_doubles(*inputs.at("rates"));
    EXPECT_TRUE(std::ranges::all_of(rates, [](double r) { return r < 0; }));
    const std::vector<double> x = to_doubles(*inputs.at("x"));
    EXPECT_TRUE(std::ranges::any_of(x, [](double v) { return v > 0; }));
  }
}

TEST(RandomStorage, ScalesAndShiftsTheResidualStreamAndTheGradientApart) {
  const Graph block = build_block(test::tiny_llama(), test::train(1, 300));
  const Inputs usual = random_storage(block, 5, {});
  const Inputs other =
      random_storage(block, 5, {}, {.outliers = 1, .scale = 4, .shift = 3, .gradient_scale = 0.5});
  const auto mean_and_square = [](const Inputs& inputs, const char* name) {
    double sum = 0, squares = 0;
    const std::vector<double> values = to_doubles(*inputs.at(name));
    for (const double v : values) {
      sum += v;
      squares += v * v;
    }
    const double count = static_cast<double>(values.size());
    return std::pair(sum / count, squares / count);
  };
  const auto [x_mean, x_square] = mean_and_square(other, "x");
  EXPECT_NEAR(x_mean, 12, 0.3);                      // 4·3
  EXPECT_NEAR(x_square - x_mean * x_mean, 16, 0.8);  // 4²
  const auto [dy_mean, dy_square] = mean_and_square(other, "dy");
  EXPECT_NEAR(dy_mean, 0, 0.05);
  EXPECT_NEAR(dy_square, 0.25, 0.02);
  EXPECT_TRUE(equal(*usual.at("w_qkv"), *other.at("w_qkv")));
}

// prepare() does the same in fp64 with values of its own.
TEST(PrepareInputs, AgreesWithThePreparationInFp64) {
  std::mt19937 random(11);
  for (int i = 0; i < 20; ++i) {
    const test::RandomBlock b = test::random_block(random);
    const Graph block = build_block(b.config, b.work);
    const Inputs original = random_storage(block, 3, {});
    NamedTensors values;
    for (const auto& [name, storage] : original) values[name] = to_doubles(*storage);
    for (const std::string& policy : all_policies()) {
      const Plan plan = make_plan(policy, b.config, b.work);
      const Inputs got = prepare_inputs(plan, original, 3, {});
      const Inputs want = round_inputs(plan.graph, prepare(plan.preparation, plan.graph, values));
      for (const auto& [name, storage] : got) {
        if (!want.contains(name)) continue;  // the next block's
        const std::vector<double> a = to_doubles(*storage);
        const std::vector<double> z = to_doubles(*want.at(name));
        // Products by OpenBLAS sum in another order: the last place of the storage type.
        for (std::size_t e = 0; e < a.size(); ++e)
          ASSERT_NEAR(a[e], z[e], 1e-6 * std::fabs(z[e]) + 1e-9)
              << name << '[' << e << "] " << policy << ' ' << test::describe(b);
      }
    }
  }
}

TEST(FastReference, AgreesWithPlainLoops) {
  std::mt19937 random(5);
  for (int i = 0; i < 45; ++i) {
    const test::RandomBlock b =
        i % 3 == 2 ? test::random_training_block(random) : test::random_block(random);
    const Graph block = build_block(b.config, b.work);
    const Inputs inputs = random_storage(block, 3, {});
    NamedTensors values;
    for (const auto& [name, storage] : inputs) values[name] = to_doubles(*storage);
    const TensorValues want = run_reference(block, values);
    const TensorValues got = fast_reference(block, inputs, {.threads = 2, .short_loops_too = true});
    for (std::size_t t = 0; t < block.tensors().size(); ++t) {
      const TensorId id{static_cast<std::int32_t>(t)};
      if (!got.has(id) || block.producers(id).empty()) continue;
      const bool zero = std::ranges::all_of(want.at(id), [](double v) { return v == 0; });
      if (zero) continue;  // dQ and dK of queries that see one key only
      EXPECT_LT(relative_l2(got.at(id), want.at(id)), 1e-12)
          << block.tensor(id).name << ' ' << test::describe(b);
    }
    EXPECT_TRUE(got.has(*block.find_tensor("y")));
    if (b.work.phase != Phase::train) continue;
    EXPECT_TRUE(got.has(*block.find_tensor("dw_qkv")));
    EXPECT_FALSE(got.has(*block.find_tensor("dprobs")));  // never whole in memory
  }
}

std::string refusal(const Plan& plan, const Inputs& inputs) {
  try {
    execute(plan, inputs, executor_gpu(), {});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(GivenTensors, AreRefusedWithTensorAndIndexWhenNotFinite) {
  const ModelConfig config = test::tiny_llama();
  const Workload work = test::forward(1, 5);
  const Plan plan = make_plan("eager", config, work);
  Inputs inputs = random_storage(build_block(config, work), 1, {});
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    auto x = std::make_shared<Storage>(Dtype::bf16, 5, config.D);
    x->write(3, 7, 1, &bad);
    x->write(4, 2, 1, &bad);  // the first one is named
    Inputs broken = inputs;
    broken["x"] = x;
    EXPECT_NE(refusal(plan, broken).find("x[3, 7]"), std::string::npos) << refusal(plan, broken);
  }
}

TEST(GivenTensors, AreRefusedWhenMissingOrOfAnotherShape) {
  const ModelConfig config = test::tiny_llama();
  const Plan plan = make_plan("eager", config, test::forward(1, 5));
  Inputs inputs = random_storage(build_block(config, test::forward(1, 5)), 1, {});
  Inputs missing = inputs;
  missing.erase("w_o");
  EXPECT_NE(refusal(plan, missing).find("w_o: the input tensor is missing"), std::string::npos)
      << refusal(plan, missing);
  inputs["x"] = std::make_shared<Storage>(Dtype::bf16, 6, config.D);
  EXPECT_NE(refusal(plan, inputs).find("6 x 20 bf16"), std::string::npos) << refusal(plan, inputs);
}

}  // namespace
}  // namespace fuseline::executor
