#include "model/config/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/error.h"
#include "tests/support/problem_of.h"

namespace fuseline {
namespace {

ModelConfig llama() {
  ModelConfig c;
  c.name = "small";
  c.layers = 2;
  c.D = 64;
  c.F = 96;
  c.H = 4;
  c.Hkv = 2;
  c.d = 16;
  c.V = 100;
  c.max_positions = 128;
  return c;
}

ModelConfig gpt() {
  ModelConfig c = llama();
  c.blocks = {{.block = "gpt"}};
  c.entry = "embed_positions";
  c.exit = "head_layer_norm";
  return c;
}

// The problem that the call reports; fails the test when there is none.
using test::problem_of;

InputProblem config_problem(const std::function<void(ModelConfig&)>& change,
                            ModelConfig config = llama()) {
  change(config);
  return problem_of([&config] { check_config(config, "m.toml"); });
}

InputProblem workload_problem(const Workload& w, const ModelConfig& config = llama()) {
  return problem_of([&] { check_workload(w, config); });
}

TEST(CheckConfig, AcceptsBothFamilies) {
  EXPECT_NO_THROW(check_config(llama(), "m.toml"));
  EXPECT_NO_THROW(check_config(gpt(), "m.toml"));
}

TEST(CheckConfig, RefusesEveryDimensionOutsideItsRange) {
  struct Dimension {
    const char* field;
    std::int64_t ModelConfig::*member;
    std::int64_t least, most;
  };
  for (const Dimension& dim :
       {Dimension{"layers", &ModelConfig::layers, 1, 10'000},
        Dimension{"D", &ModelConfig::D, 1, 1 << 24}, Dimension{"F", &ModelConfig::F, 1, 1 << 24},
        Dimension{"H", &ModelConfig::H, 1, 1 << 24},
        Dimension{"Hkv", &ModelConfig::Hkv, 1, 1 << 24},
        Dimension{"d", &ModelConfig::d, 1, 1 << 24}, Dimension{"V", &ModelConfig::V, 1, 1 << 24},
        Dimension{"max_positions", &ModelConfig::max_positions, 1, 1 << 24},
        Dimension{"sliding_window", &ModelConfig::sliding_window, 0, 1 << 24}}) {
    for (const std::int64_t bad : {dim.least - 1, dim.most + 1, std::int64_t{-7},
                                   std::numeric_limits<std::int64_t>::max()}) {
      const InputProblem p = config_problem([&](ModelConfig& c) { c.*dim.member = bad; });
      EXPECT_EQ(p.file, "m.toml");
      EXPECT_EQ(p.field, dim.field) << bad;
      EXPECT_EQ(p.value, std::to_string(bad)) << dim.field;
      EXPECT_NE(p.allowed.find(std::to_string(dim.most)), std::string::npos) << p.allowed;
    }
  }
}

TEST(CheckConfig, AcceptsTheEndsOfTheRanges) {
  ModelConfig c = llama();
  c.layers = 10'000;
  c.D = c.F = c.V = c.max_positions = c.sliding_window = kLargestDimension;
  EXPECT_NO_THROW(check_config(c, "m.toml"));
  c.layers = c.D = c.F = c.V = c.max_positions = c.H = c.Hkv = 1;
  c.d = 2;
  c.sliding_window = 0;
  EXPECT_NO_THROW(check_config(c, "m.toml"));
}

TEST(CheckConfig, KeyValueHeadsMustDivideTheHeads) {
  const InputProblem p = config_problem([](ModelConfig& c) { c.Hkv = 3; });
  EXPECT_EQ(p.field, "Hkv");
  EXPECT_EQ(p.value, "3");
  EXPECT_EQ(p.allowed, "a divisor of H = 4");
  EXPECT_EQ(config_problem([](ModelConfig& c) { c.Hkv = 8; }).field, "Hkv");
}

TEST(CheckConfig, ProjectionsMayNotBeWiderThanTheLimit) {
  // (H + 2 Hkv) d = 3 · 2^12 · 2^12 > 2^24 although H, Hkv and d are each in range.
  const InputProblem p = config_problem([](ModelConfig& c) { c.H = c.Hkv = c.d = 4096; });
  EXPECT_EQ(p.field, "d");
  EXPECT_NE(p.message.find("50331648"), std::string::npos) << p.message;
}

TEST(CheckConfig, OddHeadWidthIsRefusedOnlyWithRope) {
  EXPECT_EQ(config_problem([](ModelConfig& c) { c.d = 15; }).field, "d");
  ModelConfig c = gpt();
  c.d = 15;
  EXPECT_NO_THROW(check_config(c, "m.toml"));
}

TEST(CheckConfig, RefusesRealNumbersThatMakeNoSense) {
  for (const double bad : {0.0, -1e-5, 1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(config_problem([&](ModelConfig& c) { c.norm_eps = bad; }).field, "norm_eps") << bad;
  }
  for (const double bad : {0.0, -10000.0, 2e12, std::nan(""), HUGE_VAL}) {
    EXPECT_EQ(config_problem([&](ModelConfig& c) { c.rope_theta = bad; }).field, "rope_theta")
        << bad;
  }
}

TEST(CheckConfig, KindsOfLayersAddUp) {
  EXPECT_NO_THROW(check_config(llama(), "m.toml"));
  const auto two_kinds = [](std::int64_t first, std::int64_t second) {
    return [=](ModelConfig& c) {
      c.layers = 5;
      c.blocks = {{.block = "llama", .layers = first}, {.block = "gpt", .layers = second}};
    };
  };
  ModelConfig good = llama();
  two_kinds(2, 3)(good);
  EXPECT_NO_THROW(check_config(good, "m.toml"));
  EXPECT_EQ(config_problem(two_kinds(2, 2)).field, "layers");
}

// A letter is needed where a block has it as a parameter, and may be missing elsewhere.
TEST(CheckConfig, ALetterThatNoBlockHasMayBeMissing) {
  ModelConfig c = llama();
  c.F = 0;
  EXPECT_EQ(problem_of([&] { check_config(c, "m.toml"); }).field, "F");
  c.blocks = {{.block = "embed"}};
  EXPECT_NO_THROW(check_config(c, "m.toml"));
}

TEST(CheckWorkload, AcceptsForwardTrainAndDecode) {
  EXPECT_NO_THROW(check_workload({.phase = Phase::forward, .batch = 4, .seq = 2048}, llama()));
  EXPECT_NO_THROW(check_workload({.phase = Phase::train, .batch = 1, .seq = 1}, llama()));
  EXPECT_NO_THROW(
      check_workload({.phase = Phase::decode, .batch = 64, .seq = 1, .context = 4096}, llama()));
  // The new tokens may fill the whole cache.
  EXPECT_NO_THROW(
      check_workload({.phase = Phase::decode, .batch = 1, .seq = 8, .context = 8}, llama()));
}

TEST(CheckWorkload, AcceptsMorePositionsThanTheModelWasTrainedFor) {
  EXPECT_NO_THROW(check_workload({.batch = 1, .seq = 4096}, gpt()));
}

TEST(CheckWorkload, RefusesSizesOutOfRange) {
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, kLargestDimension + 1,
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(workload_problem({.batch = bad, .seq = 1}).field, "batch") << bad;
    EXPECT_EQ(workload_problem({.batch = 1, .seq = bad}).field, "seq") << bad;
  }
  for (const std::int64_t bad :
       {std::int64_t{-1}, kLargestDimension + 1, std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_EQ(
        workload_problem({.phase = Phase::decode, .batch = 1, .seq = 1, .context = bad}).field,
        "context")
        << bad;
  }
}

TEST(CheckWorkload, RefusesTooManyTokensOverAllSequences) {
  EXPECT_NO_THROW(check_workload({.batch = 1 << 12, .seq = 1 << 12}, llama()));
  EXPECT_EQ(workload_problem({.batch = 1 << 12, .seq = (1 << 12) + 1}).field, "seq");
  const InputProblem p = workload_problem(
      {.phase = Phase::decode, .batch = 1 << 12, .seq = 1, .context = (1 << 16) + 1});
  EXPECT_EQ(p.field, "context");
  EXPECT_NE(p.allowed.find("268435456"), std::string::npos) << p.allowed;
}

TEST(CheckWorkload, ContextShorterThanTheNewTokens) {
  const InputProblem p =
      workload_problem({.phase = Phase::decode, .batch = 1, .seq = 64, .context = 63});
  EXPECT_EQ(p.field, "context");
  EXPECT_EQ(p.value, "63");
  EXPECT_NE(p.message.find("shorter than the 64 new tokens"), std::string::npos) << p.message;
  EXPECT_EQ(p.allowed, "a whole number from 64 to 16777216");
}

TEST(CheckWorkload, DecodeNeedsAContext) {
  const InputProblem p = workload_problem({.phase = Phase::decode, .batch = 1, .seq = 1});
  EXPECT_EQ(p.field, "context");
  EXPECT_NE(p.message.find("missing"), std::string::npos) << p.message;
}

TEST(CheckWorkload, ContextOutsideDecodeIsRefusedWithAHint) {
  for (const Phase phase : {Phase::forward, Phase::train}) {
    const InputProblem p = workload_problem({.phase = phase, .batch = 1, .seq = 16, .context = 16});
    EXPECT_EQ(p.field, "context");
    EXPECT_NE(p.message.find(name_of(phase)), std::string::npos) << p.message;
    EXPECT_NE(p.allowed.find("phase decode"), std::string::npos) << p.allowed;
  }
}

TEST(CheckWorkload, ScoresThatOverflowByteCountsAreTheUsersError) {
  // 2^20 heads · 2^20 tokens · 2^24 context · 4 bytes = 2^66.
  ModelConfig c = llama();
  c.H = 1 << 20;
  const InputProblem p =
      workload_problem({.phase = Phase::decode, .batch = 1, .seq = 1 << 20, .context = 1 << 24}, c);
  EXPECT_NE(p.message.find("64 bits"), std::string::npos) << p.message;
}

TEST(Words, ParseWhatTheyPrint) {
  for (const Phase phase : {Phase::forward, Phase::train, Phase::decode}) {
    EXPECT_EQ(parse_phase(name_of(phase), "--phase"), phase);
  }
  for (const Dtype dtype : {Dtype::bf16, Dtype::fp16, Dtype::fp32}) {
    EXPECT_EQ(parse_dtype(name_of(dtype), "--dtype"), dtype);
  }
}

TEST(Words, UnknownOnesGiveFieldValueAllowedAndNearest) {
  const InputProblem p = problem_of([] { parse_phase("decoed", "--phase"); });
  EXPECT_EQ(p.field, "--phase");
  EXPECT_EQ(p.value, "decoed");
  EXPECT_EQ(p.message, "unknown phase");
  EXPECT_EQ(p.allowed, "forward, train, decode");
  EXPECT_EQ(p.nearest, "decode");
  EXPECT_EQ(problem_of([] { parse_dtype("b16", "--dtype"); }).nearest, "bf16");
  EXPECT_EQ(problem_of([] { parse_phase("", "--phase"); }).message, "unknown phase");
}

TEST(Widths, QkvCountsSharedHeadsOnce) { EXPECT_EQ(llama().qkv_width(), (4 + 2 * 2) * 16); }

}  // namespace
}  // namespace fuseline
