#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A model that a test can train for some steps in a second.
const char* const kTinyModel = R"(name = "tiny-char"
title = "A character model of odd sizes"
family = "llama"
source = "made for this test"
layers = 1
D = 40
F = 52
H = 2
Hkv = 1
d = 20
V = 30
max_positions = 64
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

// Twenty steps of warm-up are too few to learn much: thirty fall by a tenth.
std::vector<std::string> tiny(std::vector<std::string> more) {
  std::vector<std::string> args = {
      "train",     "--model", temporary_file("tiny-char.toml", kTinyModel),
      "--batch",   "4",       "--seq",
      "16",        "--steps", "30",
      "--threads", "1"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Train, PrintsTheVerdictAndWritesTheCurves) {
  const std::string csv = temporary_file("curves.csv", "");
  const CliRun run = cli(tiny({"--output", csv}));
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("trains: final loss unfused "));
  EXPECT_THAT(run.out, HasSubstr("30 steps of 4 x 16 characters, bf16, seed 1"));
  EXPECT_THAT(run.err, HasSubstr("written " + csv));
  expect_fits_100_columns(run.out);
  const std::vector<std::string> lines = lines_of(text_of(csv));
  ASSERT_EQ(lines.size(), 31U);
  EXPECT_EQ(lines[0], "step,unfused,coda,fp64,fp64-nudged");
  EXPECT_EQ(lines[30].substr(0, 3), "30,");
}

TEST(TrainJson, HoldsTheCurvesAndTheRulesNumbers) {
  const CliRun run = cli(tiny({"--format", "json", "--policy", "eager", "--seed", "3"}));
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.training/1");
  EXPECT_EQ(j.at("seed"), 3);
  EXPECT_EQ(j.at("window"), 3);
  EXPECT_EQ(j.at("passed").get<bool>(), run.status == 0) << run.err;
  ASSERT_EQ(j.at("runs").size(), 4U);
  EXPECT_EQ(j.at("runs")[0].at("name"), "unfused");  // always there
  EXPECT_EQ(j.at("runs")[1].at("name"), "eager");
  for (const json& r : j.at("runs")) EXPECT_EQ(r.at("losses").size(), 30U);
  EXPECT_TRUE(j.at("runs")[0].at("allowed_gap").is_null());
  EXPECT_GT(j.at("runs")[1].at("allowed_gap").get<double>(), 0);
}

TEST(Train, FailsWithStatus1WhereNothingIsLearned) {
  const CliRun run = cli(tiny({"--steps", "1"}));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, HasSubstr("FAIL"));
  EXPECT_THAT(run.err, HasSubstr("does not train: "));
}

TEST(TrainErrors, NameTheOptionAndWhatIsAllowed) {
  const auto expect = [](const std::vector<std::string>& more, const std::string& text) {
    const CliRun run = cli(tiny(more));
    EXPECT_EQ(run.status, 2) << text;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(text));
  };
  expect({"--steps", "0"}, "--steps = '0': is too small; allowed: a whole number from 1 to");
  expect({"--policy", "codas"}, "did you mean 'coda'?");
  expect({"--policy", "whole-block"}, "policy whole-block has no plan for the backward pass");
  expect({"--dtype", "fp8"}, "--dtype = 'fp8'");
  expect({"--model", "gpt3-175b"}, "--model = 'gpt3-175b': needs ");
  expect({"--output", "/no/such/folder/curves.csv"}, "--output = '/no/such/folder/curves.csv'");
  expect({"--output", ""}, "--output");
  expect({"--step", "3"}, "did you mean '--steps'?");
}

// The path is refused before the work, and the work leaves nothing beside its result.
TEST(TrainErrors, LeaveNoFilesBehind) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "train_out";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const CliRun run =
      cli(tiny({"--policy", "whole-block", "--output", (folder / "c.csv").string()}));
  EXPECT_EQ(run.status, 2);
  EXPECT_TRUE(fs::is_empty(folder));
}

}  // namespace
}  // namespace fuseline
