// Gradients of whole blocks against central differences: hundreds of runs of the reference.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "model/backward.h"
#include "model/blocks/block.h"
#include "tests/model/gradient_check.h"
#include "tests/model/tiny_models.h"

namespace fuseline {
namespace {

ModelConfig tiny_llama_mha() {
  ModelConfig c = test::tiny_llama();
  c.Hkv = c.H;
  c.norm_eps = 1e-3;
  return c;
}

ModelConfig tiny_llama_gqa_biased() {
  ModelConfig c = test::tiny_llama();
  c.qkv_bias = c.out_bias = c.mlp_bias = true;
  return c;
}

ModelConfig tiny_llama_window() {
  ModelConfig c = test::tiny_llama();
  c.sliding_window = 2;
  return c;
}

// Scores that the cap bends: they are about as large as it.
ModelConfig tiny_gemma2_capped() {
  ModelConfig c = test::tiny_llama();
  c.blocks = {{.block = "gemma2"}};
  c.values["softcap"] = 1.5;
  return c;
}

// Every input and weight of the forward block against central differences.
void expect_gradients(const ModelConfig& config, const BackwardOptions& options, unsigned seed) {
  Workload forward_work = test::forward(2, 4);
  const Graph forward = build_block(config, forward_work);
  const Graph joint = differentiate(forward, options);
  std::mt19937 random(seed);
  const NamedTensors inputs = test::outlier_inputs(joint, random);
  const TensorValues values = run_reference(joint, inputs);
  for (const Tensor& t : forward.tensors()) {
    if (t.role != Role::input && t.role != Role::weight) continue;
    EXPECT_EQ(test::wrong_gradient(forward, inputs, t.name, values.at("d" + t.name), random, 24),
              "");
  }
}

struct Case {
  const char* name;
  ModelConfig config;
};

class TinyBlock : public testing::TestWithParam<Case> {};

TEST_P(TinyBlock, HasTheGradientsOfCentralDifferences) {
  expect_gradients(GetParam().config, {}, 29);
}

TEST(CappedScores, HaveTheGradientsOfCentralDifferences) {
  expect_gradients(tiny_gemma2_capped(), {}, 37);
  BackwardOptions options;
  options.save_log_sum_exp = true;  // the scores are computed again
  expect_gradients(tiny_gemma2_capped(), options, 41);
}

TEST_P(TinyBlock, HasThemWithRecomputationAndLogSumExpToo) {
  const bool gpt = GetParam().config.is_all("gpt");
  BackwardOptions options;
  options.recompute = {"xn1", "xn2", "act", "attn", gpt ? "up" : "gu"};
  options.save_log_sum_exp = true;
  options.concatenate_slices = true;
  expect_gradients(GetParam().config, options, 31);
}

TEST_P(TinyBlock, RecomputationChangesNoGradient) {
  const Graph forward = build_block(GetParam().config, test::forward(1, 5));
  BackwardOptions options;
  options.recompute = {"xn1", "xn2", "act"};
  options.save_log_sum_exp = true;
  const Graph saved = differentiate(forward);
  const Graph again = differentiate(forward, options);
  const NamedTensors inputs = random_inputs(saved, 5);
  const TensorValues want = run_reference(saved, inputs);
  const TensorValues got = run_reference(again, inputs);
  for (const Tensor& t : saved.tensors()) {
    if (t.role != Role::output) continue;
    EXPECT_EQ(disagreement(got.at(t.name), want.at(t.name), 1e-12), "") << t.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backward, TinyBlock,
                         testing::Values(Case{"llama_mha", tiny_llama_mha()},
                                         Case{"llama_gqa", test::tiny_llama()},
                                         Case{"llama_gqa_biased", tiny_llama_gqa_biased()},
                                         Case{"llama_window", tiny_llama_window()},
                                         Case{"gpt", test::tiny_gpt()}),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace fuseline
