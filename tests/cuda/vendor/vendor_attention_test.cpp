#include "cuda/vendor/vendor_attention.h"

#include <gtest/gtest.h>

#include "model/blocks/block.h"
#include "model/policy.h"
#include "model/primitives/functions.h"
#include "tests/model/plan_support.h"

namespace fuseline::cuda {
namespace {

struct Attention {
  Plan plan;
  Program program;
  [[nodiscard]] std::optional<VendorAttention> form() const {
    return vendor_attention(plan.graph, program);
  }
};

ModelConfig config() {
  ModelConfig c = test::tiny_llama();
  c.d = 64;
  return c;
}

Attention attention_of(const std::string& policy, const ModelConfig& model, const Workload& work,
                       const std::string& kernel = "attention") {
  Plan plan = make_plan(policy, build_block(model, work));
  Program program = test::find_kernel(plan, kernel)->phases.front();
  return {std::move(plan), std::move(program)};
}

TEST(VendorAttentions, CausalForwardIsOneCall) {
  const auto form = attention_of("eager", config(), test::forward(2, 9)).form();
  ASSERT_TRUE(form.has_value());
  EXPECT_TRUE(form->masked);
  EXPECT_FALSE(form->log_sum_exp.has_value());
}

TEST(VendorAttentions, TrainingAsksForTheLogSumExp) {
  const auto form = attention_of("eager", config(), test::train(2, 9)).form();
  ASSERT_TRUE(form.has_value());
  EXPECT_TRUE(form->log_sum_exp.has_value());
}

TEST(VendorAttentions, OneNewTokenSeesAllKeys) {
  const auto form = attention_of("eager", config(), test::decode(2, 1, 12)).form();
  ASSERT_TRUE(form.has_value());
  EXPECT_FALSE(form->masked);
}

TEST(VendorAttentions, CappedScoresAreOurs) {
  Attention attention = attention_of("eager", config(), test::forward(2, 9));
  std::get<AttentionMainloop>(attention.program.mainloop).shape.softcap = 30;
  EXPECT_FALSE(attention.form().has_value());
}

TEST(VendorAttentions, SeveralNewTokensOverACacheAreOurs) {
  EXPECT_FALSE(attention_of("eager", config(), test::decode(2, 3, 12)).form().has_value());
}

TEST(VendorAttentions, GradientIsOurs) {
  const Attention gradient = attention_of("coda", config(), test::train(2, 9), "d_attention");
  EXPECT_FALSE(gradient.form().has_value());
}

TEST(VendorAttentions, RotationInThePrologueIsOurs) {
  EXPECT_FALSE(attention_of("tensorrt-llm", config(), test::forward(2, 9)).form().has_value());
}

TEST(VendorAttentions, OddHeadsAndWindowsAreOurs) {
  EXPECT_FALSE(attention_of("eager", test::tiny_llama(), test::forward(2, 9)).form().has_value());
  Attention windowed = attention_of("eager", config(), test::forward(2, 9));
  std::get<AttentionMainloop>(windowed.program.mainloop).shape.window = 4;
  EXPECT_FALSE(windowed.form().has_value());
}

TEST(VendorAttentions, WhatFollowsAttentionIsOurs) {
  Attention scaled = attention_of("eager", config(), test::forward(2, 9));
  scaled.program.body.insert(scaled.program.body.begin(),
                             Map{1, maps::scale_by_constant, {0}, 2.0});
  EXPECT_FALSE(scaled.form().has_value());
}

}  // namespace
}  // namespace fuseline::cuda
