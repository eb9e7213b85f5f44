#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A model that the test can execute in milliseconds.
const char* const kVerifiedModel = R"(name = "tiny"
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

std::vector<std::string> tiny_model(std::vector<std::string> more) {
  std::vector<std::string> args = {"verify", "--model", temporary_file("tiny.toml", kVerifiedModel),
                                   "--gpu", "h200"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(Verify, PassesAndPrintsErrorsBytesAndLaunches) {
  const CliRun run = cli(tiny_model({"--seq", "40", "--policy", "unfused,torch-compile,coda"}));
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("coda: pass"));
  EXPECT_THAT(run.out, HasSubstr("y_stats *"));
  EXPECT_THAT(run.out, HasSubstr("as predicted, tensor by tensor"));
  EXPECT_THAT(run.out, HasSubstr("launches: 7, as predicted"));
  EXPECT_EQ(run.err, "");
  expect_fits_100_columns(run.out);
}

TEST(VerifyJson, HoldsErrorsRatiosBytesAndLaunches) {
  const CliRun run =
      cli(tiny_model({"--phase", "decode", "--context", "90", "--batch", "2", "--policy",
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
    return cli(tiny_model(
                   {"--seq", "150", "--policy", "coda", "--format", "json", "--threads", threads}))
        .out;
  };
  const std::string one = run("1");
  EXPECT_GT(one.size(), 1000U);
  EXPECT_EQ(run("2"), one);
  EXPECT_EQ(run("3"), one);
}

TEST(LongVerifyAllBlocks, TriesEveryPhaseAndFormatOfEveryBlock) {
  const CliRun run = cli({"verify", "--all-blocks"});
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  for (const char* block : {"llama", "gpt", "gemma2", "moe", "mla", "mla-dense", "mamba", "mamba2",
                            "jamba", "jamba-dense", "mmdit", "bert", "t5_encoder", "t5_decoder"})
    EXPECT_THAT(run.out, testing::ContainsRegex(std::string("\n") + block + "  *[1-9]")) << block;
  EXPECT_THAT(run.out, testing::ContainsRegex("\n[1-9][0-9]+ plans, 0 failed\n"));
  expect_fits_100_columns(run.out);
}

// An encoder has no decode.
TEST(VerifyAllBlocks, CountsNoCasesOfAPhaseThatABlockLacks) {
  const CliRun run = cli({"verify", "--all-blocks", "--block", "bert", "--phase", "decode"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, testing::ContainsRegex("\nbert  *0  *0  *0 "));
  EXPECT_THAT(run.out, HasSubstr("\n0 plans, 0 failed\n"));
}

TEST(VerifyAllBlocks, TakesOneBlockAndRefusesSizes) {
  const CliRun one =
      cli({"verify", "--all-blocks", "--block", "mla", "--phase", "decode", "--policy", "eager"});
  EXPECT_EQ(one.status, 0) << one.out << one.err;
  EXPECT_THAT(one.out, testing::ContainsRegex("\nmla-dense  *[1-9]"));
  expect_fits_100_columns(one.out);
  EXPECT_THAT(one.out, Not(HasSubstr("\nllama ")));
  const CliRun sized = cli({"verify", "--all-blocks", "--seq", "40"});
  EXPECT_EQ(sized.status, 2);
  EXPECT_THAT(sized.err, HasSubstr("--seq = '40': --all-blocks has sizes and formats of its own"));
  const CliRun wrong = cli({"verify", "--all-blocks", "--block", "mlb"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("mla"));
  const CliRun phase = cli({"verify", "--all-blocks", "--phase", "decod"});
  EXPECT_EQ(phase.status, 2);
  EXPECT_THAT(phase.err, HasSubstr("decode"));
  const CliRun as_json = cli({"verify", "--all-blocks", "--format", "json"});
  EXPECT_EQ(as_json.status, 2);
  EXPECT_EQ(as_json.out, "");
}

TEST(Verify, EveryBreakFailsInTrainingAndNamesATensor) {
  const CliRun list = cli({"verify", "--list-breaks"});
  ASSERT_EQ(list.status, 0);
  const std::vector<std::string> names = lines_of(list.out);
  EXPECT_GE(names.size(), 13U);
  for (const std::string& name : names) {
    const CliRun run =
        cli(tiny_model({"--phase", "train", "--seq", "40", "--policy", "coda", "--break", name}));
    EXPECT_EQ(run.status, 1) << name;
    EXPECT_THAT(run.out, HasSubstr("FAIL ")) << name;
    EXPECT_THAT(run.err, HasSubstr("verify failed: coda: ")) << name;
  }
}

TEST(Verify, BreaksOfTheForwardPassFailThereToo) {
  for (const std::string& name : lines_of(cli({"verify", "--list-breaks"}).out)) {
    const CliRun run = cli(tiny_model({"--seq", "40", "--policy", "coda", "--break", name}));
    if (run.status == 2) {
      EXPECT_THAT(run.err, HasSubstr("allowed: --phase train")) << name;
      EXPECT_EQ(run.out, "") << name;
    } else {
      EXPECT_EQ(run.status, 1) << name;
      EXPECT_THAT(run.out, HasSubstr("FAIL ")) << name;
    }
  }
}

TEST(VerifyTrain, ListsEveryGradientOfEveryPolicyThatTrains) {
  const CliRun run = cli(tiny_model({"--phase", "train", "--seq", "40", "--policy",
                                     "unfused,composed,eager,per-operator,flash-attention,xla,"
                                     "torch-compile,coda"}));
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  for (const char* gradient : {"\ndx *", "\ndw_qkv *", "\ndw_norm1 *", "\ndw_down *"})
    EXPECT_THAT(run.out, HasSubstr(gradient));
  EXPECT_THAT(run.out, HasSubstr("coda: pass"));
  EXPECT_THAT(run.out, HasSubstr("launches: 21, as predicted"));
  EXPECT_EQ(run.err, "");
  expect_fits_100_columns(run.out);
}

TEST(VerifyTrain, DoesNotDependOnThreads) {
  const auto run = [](const char* threads) {
    return cli(tiny_model({"--phase", "train", "--seq", "140", "--policy", "coda,eager", "--format",
                           "json", "--threads", threads}))
        .out;
  };
  const std::string one = run("1");
  const json j = json::parse(one);
  EXPECT_EQ(j.at("phase"), "train");
  EXPECT_EQ(j.at("passed"), true);
  for (const json& p : j.at("policies")) {
    EXPECT_EQ(p.at("bytes_equal"), true);
    EXPECT_TRUE(p.at("first_not_finite").is_null());
    std::set<std::string> judged;
    for (const json& t : p.at("tensors"))
      if (t.at("output") == true) judged.insert(t.at("name").get<std::string>());
    for (const char* name : {"y", "dx", "dw_qkv", "dw_o", "dw_gate_up", "dw_down", "dw_norm1"})
      EXPECT_TRUE(judged.contains(name)) << name;
  }
  EXPECT_EQ(run("2"), one);
  EXPECT_EQ(run("3"), one);
}

TEST(VerifyTrain, SaysWhatOverflowsFirst) {
  const std::vector<std::string> args =
      tiny_model({"--phase", "train", "--seq", "150", "--policy", "unfused,coda", "--dtype", "fp16",
                  "--input-scale", "900"});
  const CliRun table = cli(args);
  EXPECT_EQ(table.status, 1);
  EXPECT_THAT(table.out, HasSubstr("inputs: x scaled by 900"));
  EXPECT_THAT(table.out, HasSubstr("unfused: pass"));
  EXPECT_THAT(table.out,
              HasSubstr("FAIL the first value that is not finite: -inf in x_weighted[37, 50]"));
  EXPECT_THAT(table.err, HasSubstr("coda: the first value that is not finite"));
  expect_fits_100_columns(table.out);
  std::vector<std::string> more = args;
  more.insert(more.end(), {"--format", "json"});
  const CliRun run = cli(more);
  EXPECT_EQ(run.status, 1);
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("inputs").at("scale"), 900);
  EXPECT_EQ(j.at("policies")[0].at("passed"), true);
  const json& coda = j.at("policies")[1];
  EXPECT_EQ(coda.at("passed"), false);
  EXPECT_EQ(coda.at("first_not_finite").at("tensor"), "x_weighted");
  EXPECT_EQ(coda.at("first_not_finite").at("at"), json::array({37, 50}));
  EXPECT_EQ(coda.at("first_not_finite").at("value"), "-inf");
  EXPECT_EQ(coda.at("tensors")[1].at("not_finite_at"), json::array({37, 224}));
}

TEST(VerifyTrain, RefusesPoliciesWithoutABackwardPassAndTooLargeBlocks) {
  const CliRun policy = cli(tiny_model({"--phase", "train", "--policy", "whole-block"}));
  EXPECT_EQ(policy.status, 2);
  EXPECT_THAT(policy.err, HasSubstr("whole-block"));
  EXPECT_EQ(policy.out, "");
  const CliRun large = cli({"verify", "--model", "llama2-70b", "--gpu", "h200", "--phase", "train",
                            "--seq", "4096", "--policy", "coda", "--memory-limit", "8G"});
  EXPECT_EQ(large.status, 2);
  EXPECT_THAT(large.err, HasSubstr("more than the 8.0 GB that it may use"));
}

TEST(VerifyErrors, NameTheOptionAndWhatIsAllowed) {
  const auto expect = [](const std::vector<std::string>& more, const std::string& text) {
    const CliRun run = cli(tiny_model(more));
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
  expect({"--input-scale", "0"}, "--input-scale = '0': is not a positive number");
  expect({"--input-shift", "x"}, "--input-shift = 'x': is not a number");
  expect({"--gradient-scale", "1e"}, "--gradient-scale");
  expect({"--outliers", "nan"}, "--outliers = 'nan'");
  expect({"--dtype", "fp16", "--input-scale", "1e6"}, "x[0, ");
  expect({"--format", "csv"}, "allowed: table, json");
  expect({"--policy", "codda"}, "did you mean 'coda'?");
  expect({"--dtype", "fp8"}, "allowed: bf16, fp16, fp32");
}

}  // namespace
}  // namespace fuseline
