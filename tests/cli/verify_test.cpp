#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A model that the test can execute in milliseconds.
const char* const kTinyModel = R"(name = "tiny"
title = "A LLaMA-like block of odd sizes"
family = "llama"
source = "made for this test"
layers = 2
D = 168
F = 230
H = 6
Hkv = 2
d = 28
V = 500
max_positions = 512
sliding_window = 0
norm = "rmsnorm"
norm_eps = 1e-5
activation = "swiglu"
rope_theta = 10000.0
qkv_bias = false
out_bias = false
mlp_bias = false
tied_embeddings = false
)";

std::vector<std::string> tiny(std::vector<std::string> more) {
  std::vector<std::string> args = {"verify", "--model", temporary_file("tiny.toml", kTinyModel),
                                   "--gpu", "h200"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Verify, PassesAndPrintsErrorsBytesAndLaunches) {
  const CliRun run = cli(tiny({"--seq", "40", "--policy", "unfused,torch-compile,coda"}));
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("coda: pass"));
  EXPECT_THAT(run.out, HasSubstr("y_stats *"));
  EXPECT_THAT(run.out, HasSubstr("as predicted, tensor by tensor"));
  EXPECT_THAT(run.out, HasSubstr("launches: 7, as predicted"));
  EXPECT_EQ(run.err, "");
  expect_fits_100_columns(run.out);
}

TEST(VerifyJson, HoldsErrorsRatiosBytesAndLaunches) {
  const CliRun run = cli(tiny({"--phase", "decode", "--context", "90", "--batch", "2", "--policy",
                               "unfused,coda", "--format", "json", "--dtype", "fp16"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.verification/1");
  EXPECT_EQ(j.at("dtype"), "fp16");
  EXPECT_EQ(j.at("context"), 90);
  EXPECT_EQ(j.at("passed"), true);
  ASSERT_EQ(j.at("policies").size(), 2U);
  for (const json& p : j.at("policies")) {
    EXPECT_EQ(p.at("launches"), p.at("launches_predicted"));
    EXPECT_EQ(p.at("bytes_equal"), true);
    EXPECT_GT(p.at("loaded_bytes").get<std::int64_t>(), 0);
    EXPECT_EQ(p.at("loaded_bytes"), p.at("predicted_loaded_bytes"));
    EXPECT_EQ(p.at("stored_bytes"), p.at("predicted_stored_bytes"));
    std::int64_t loaded = 0;
    for (const json& k : p.at("kernels"))
      for (const json& t : k.at("counted")) loaded += t.at("loaded_bytes").get<std::int64_t>();
    EXPECT_EQ(loaded, p.at("loaded_bytes").get<std::int64_t>());
    bool output = false;
    for (const json& t : p.at("tensors")) {
      EXPECT_GT(t.at("relative_l2").get<double>(), 0) << t;
      EXPECT_GT(t.at("max_error").get<double>(), 0) << t;
      EXPECT_GT(t.at("unfused").at("relative_l2").get<double>(), 0) << t;
      output = output || (t.at("name") == "y" && t.at("output") == true);
    }
    EXPECT_TRUE(output);
  }
}

TEST(Verify, ThreadsChangeNothing) {
  const auto run = [](const char* threads) {
    return cli(tiny({"--seq", "150", "--policy", "coda", "--format", "json", "--threads", threads}))
        .out;
  };
  const std::string one = run("1");
  EXPECT_GT(one.size(), 1000U);
  EXPECT_EQ(run("2"), one);
  EXPECT_EQ(run("3"), one);
}

TEST(Verify, EveryBreakFailsAndNamesATensor) {
  const CliRun list = cli({"verify", "--list-breaks"});
  ASSERT_EQ(list.status, 0);
  const std::vector<std::string> names = lines_of(list.out);
  EXPECT_GE(names.size(), 5U);
  for (const std::string& name : names) {
    const CliRun run = cli(tiny({"--seq", "40", "--policy", "coda", "--break", name}));
    EXPECT_EQ(run.status, 1) << name;
    EXPECT_THAT(run.out, HasSubstr("FAIL ")) << name;
    EXPECT_THAT(run.err, HasSubstr("verify failed: coda: ")) << name;
  }
}

TEST(VerifyErrors, NameTheOptionAndWhatIsAllowed) {
  const auto expect = [](const std::vector<std::string>& more, const std::string& text) {
    const CliRun run = cli(tiny(more));
    EXPECT_EQ(run.status, 2) << text;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(text));
  };
  expect({"--break", "swaped-pair"}, "did you mean 'swapped-pair'?");
  expect({"--break", "x"}, "dropped-row-scale, missed-partial");
  expect({"--threads", "0"}, "--threads = '0': is too small");
  expect({"--layers", "2"}, "verify executes one block; allowed: 1");
  expect({"--memory-limit", "10X"}, "--memory-limit");
  expect({"--memory-limit", "100K"}, "more than the 0.0 GB that it may use");
  expect({"--format", "csv"}, "allowed: table, json");
  expect({"--policy", "codda"}, "did you mean 'coda'?");
  expect({"--dtype", "fp8"}, "allowed: bf16, fp16, fp32");
}

}  // namespace
}  // namespace fuseline
