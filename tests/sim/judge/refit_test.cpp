#include "sim/judge/refit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace fuseline {
namespace {

MeasuredBlock block_of(const std::string& model) {
  MeasuredBlock b;
  b.block = {model, "eager", {.seq = 16}};
  b.time = {microseconds(100), microseconds(90), microseconds(110)};
  return b;
}

Measurements blocks_of(const std::vector<std::string>& models) {
  Measurements all;
  all.path = "made.csv";
  for (const std::string& model : models) all.blocks.push_back(block_of(model));
  return all;
}

TEST(Refit, RefusesAModelThatWasNotMeasured) {
  const Measurements all = blocks_of({"tinyllama", "gpt2-xl"});
  try {
    refit(all, load_gpu("h200"), {.without = "gpt2-x", .iterations = 1});
    FAIL() << "accepted";
  } catch (const InputError& e) {
    EXPECT_EQ(e.problem().field, "--without");
    EXPECT_EQ(e.problem().nearest, "gpt2-xl");
  }
}

TEST(Refit, RefusesWhenNothingIsLeft) {
  EXPECT_THROW(refit(blocks_of({"tinyllama"}), load_gpu("h200"), {.without = "tinyllama"}),
               InputError);
}

TEST(Refit, LeavesTheModelOutOfTheFit) {
  // Given one block that takes ten times too long, a fit without its model is as good as before.
  Measurements all = blocks_of({"tinyllama", "gpt2-xl"});
  all.blocks[0].time.median = Seconds(1.0);
  const FitResult with = refit(all, load_gpu("h200"), {.iterations = 1});
  const FitResult without = refit(all, load_gpu("h200"), {.without = "tinyllama", .iterations = 1});
  EXPECT_GT(with.initial_mean_abs, 1.0);
  EXPECT_LT(without.initial_mean_abs, 1.0);
}

// Both models have a product with a weight of [4096, 4096]: without either of them it is left out.
TEST(Refit, LeavesOutTheGemmsThatTheModelShares) {
  Measurements all = blocks_of({"llama2-7b", "llama3-8b"});
  MeasuredGemm shared{.m = 4096, .n = 4096, .k = 4096, .time = {}};
  shared.time = {Seconds(1.0), Seconds(0.9), Seconds(1.1)};
  all.gemms.push_back(shared);
  EXPECT_GT(refit(all, load_gpu("h200"), {.iterations = 1}).initial_mean_abs, 1.0);
  for (const char* model : {"llama2-7b", "llama3-8b"}) {
    const FitResult without = refit(all, load_gpu("h200"), {.without = model, .iterations = 1});
    EXPECT_LT(without.initial_mean_abs, 1.0) << model;
  }
}

// All bytes of a small product of attention come from L2 as predicted, and some did not when they
// were counted: no logarithm of nothing.
TEST(Refit, WhatWasPredictedToBeNothingIsAFiniteError) {
  EXPECT_DOUBLE_EQ(log_error(0.25), std::log(1.25));
  EXPECT_DOUBLE_EQ(log_error(-0.5), std::log(0.5));
  EXPECT_DOUBLE_EQ(log_error(-1.0), -std::log(20.0));
  EXPECT_DOUBLE_EQ(log_error(-0.999), -std::log(20.0));
}

TEST(Refit, EveryParameterIsAConstantOfTheModelWithinItsRange) {
  // Their names are read back from a file, which refuses unknown ones.
  ConstantValues start;
  for (const FitParameter& p : refit_parameters()) {
    EXPECT_LE(p.lower, p.initial) << p.name;
    EXPECT_GE(p.upper, p.initial) << p.name;
    start[p.name] = p.initial;
  }
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "fuseline-refit-test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "without-tinyllama.toml")
      << calibration_toml(start, "a \"made\" one\n", "2026-11-20");
  const auto read = load_left_out_constants(folder.string(), {"tinyllama", "gpt2-xl"});
  std::filesystem::remove_all(folder);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read.at("tinyllama"), start);
}

TEST(Refit, ConstantsReplaceTheGpusOwn) {
  Gpu gpu = load_gpu("h200");
  set_constant(gpu, "launch.gap_us", 0.5);
  const Gpu changed = with_constants(gpu, {{"launch.gap_us", 0.25}, {"stream.ramp_us", 2.0}});
  EXPECT_DOUBLE_EQ(to_us(changed.constants.launch.gap), 0.25);
  EXPECT_DOUBLE_EQ(to_us(changed.constants.stream.ramp), 2.0);
}

}  // namespace
}  // namespace fuseline
