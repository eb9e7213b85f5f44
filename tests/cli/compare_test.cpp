#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "sim/selection/saved_prediction.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kMeasured =
    std::string(FUSELINE_SOURCE_DIR) + "/scenarios/measurements/h200-pytorch";

TEST(Compare, PrintsEachQuantityWithItsTargetAndTheWorstFive) {
  const CliRun run = cli({"compare", kMeasured, "--model", "gpt2-xl", "--blocks", "--kernels"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  for (const char* part : {"block time", "worst case", "<= 10 %", "<= 25 %", "roofline",
                           "hierarchy", "bias", "HBM bytes per block", "HBM bytes per GEMM kernel",
                           "NVIDIA H200", "driver 580", "worst block time, hierarchy"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
}

TEST(Compare, SetsMeasuredGainsBesidePredictedOnes) {
  const std::string odd = kMeasured + "/../h200-fuseline-odd";
  const CliRun run = cli({"compare", odd, "--policy", "coda", "--gain-over", "per-operator"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, HasSubstr("slope"));
  EXPECT_THAT(run.out, ::testing::ContainsRegex("all +7 +[-+][0-9.]+ %"));
  const CliRun csv =
      cli({"compare", odd, "--policy", "coda", "--gain-over", "per-operator", "--format", "csv"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 1 + 7);
  // 911.744 us over 928.712 us.
  EXPECT_THAT(csv.out, HasSubstr("h200-fuseline-odd,llama2-13b forward 1x1000,0.9817,"));
}

TEST(Compare, GainsNeedOnePolicyOverAnother) {
  const std::vector<std::vector<std::string>> wrong = {
      {"--gain-over", "per-operator"},
      {"--gain-over", "per-operator", "--policy", "coda,eager"},
      {"--gain-over", "per-operator,eager", "--policy", "coda"},
      {"--gain-over", "per-operater", "--policy", "coda"},
      {"--gain-over", "per-operator", "--policy", "coda", "--blocks"},
      {"--gain-over", "per-operator", "--policy", "coda", "--model", "llama2-7b"},
      {"--gain-over", "per-operator", "--policy", "coda", "--format", "json"},
      {"--gain-over", "per-operator", "--policy", "xla"}};
  for (std::vector<std::string> args : wrong) {
    args.insert(args.begin(), {"compare", kMeasured + "/../h200-fuseline-odd"});
    EXPECT_EQ(cli(args).status, 2) << args.back();
  }
  EXPECT_EQ(cli({"compare", kMeasured, kMeasured, kMeasured}).status, 2);
}

// The accuracy goals, of the shipped constants and of those fitted without the judged model.
TEST(SlowCompare, MeetsEveryTargetOnWhatWasMeasured) {
  for (const char* phase : {"", "train"}) {
    std::vector<std::string> args = {"compare", kMeasured, "--check"};
    if (*phase != 0) args.insert(args.end(), {"--phase", phase});
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 0) << run.err << run.out;
    EXPECT_THAT(run.out, HasSubstr("left out"));
  }
}

// Other models and shapes; what of them constants have seen stands in the README of that folder.
TEST(SlowCompare, PredictsBlocksOfOtherModels) {
  const CliRun run = cli({"compare", kMeasured + "-wide", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  double sum = 0;
  int count = 0;
  for (const json& c : j.at("cases")) {
    if (c.at("quantity") != "block_time") continue;
    const double measured = c.at("measured_us");
    const double predicted = c.at("predicted_us").at("hierarchy");
    sum += std::abs(predicted - measured) / measured;
    ++count;
  }
  EXPECT_EQ(count, 101);
  EXPECT_LT(sum / count, 0.10);
}

TEST(Compare, JsonHasMeasuredBesidePredicted) {
  const CliRun run =
      cli({"compare", kMeasured, "--model", "gpt2-xl", "--phase", "decode", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.comparison/1");
  ASSERT_EQ(j.at("cases").size(), 6U);  // eager and torch-compile at three batches
  for (const json& c : j.at("cases")) {
    EXPECT_EQ(c.at("quantity"), "block_time");
    EXPECT_GT(c.at("measured_us").get<double>(), 0);
    EXPECT_GT(c.at("predicted_us").at("hierarchy").get<double>(), 0);
  }
}

TEST(Compare, CheckFailsWithOneWhenATargetIsMissed) {
  // A made-up block that takes a second: no prediction is near.
  const std::string file =
      temporary_file("block.csv",
                     "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer\n"
                     "tinyllama,eager,forward,1,64,0,1000,1000,1000,graph\n");
  EXPECT_EQ(cli({"compare", file, "--gpu", "h200"}).status, 0);
  const CliRun run = cli({"compare", file, "--gpu", "h200", "--check"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("target"));
  EXPECT_THAT(run.out, HasSubstr("block time"));
}

TEST(Compare, ShowsRivalsBesideThePoliciesOfTheirBlock) {
  const std::string head =
      "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer\n";
  const std::filesystem::path folder =
      std::filesystem::path(
          temporary_file("rivals.csv", head + "tinyllama,torch-compile,forward,1,64,0,3,3,3,graph\n"
                                              "tinyllama,eager,forward,1,128,0,5,5,5,graph\n"))
          .parent_path();
  temporary_file("block.csv", head +
                                  "tinyllama,coda,forward,1,64,0,2,2,2,graph\n"
                                  "tinyllama,unfused,forward,1,64,0,6,6,6,graph\n"
                                  "tinyllama,coda,forward,2,64,0,4,4,4,graph\n");
  std::vector<std::string> args = {"compare", folder.string(), "--gpu", "h200"};
  EXPECT_EQ(cli(args).out.find("rivals"), std::string::npos);
  args.emplace_back("--blocks");
  const CliRun run = cli(args);
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  const auto at = run.out.find("\nrivals");
  ASSERT_NE(at, std::string::npos) << run.out;
  EXPECT_EQ(run.out.substr(at),
            "\nrivals, timed in turns with our policies\n"
            "rival                                  measured  policy    measured  times as fast\n"
            "──────────────────────────────────────────────────────────────────────────────────\n"
            "tinyllama torch-compile forward 1x64  3000.0 µs  coda     2000.0 µs           1.50\n"
            "                                                 unfused  6000.0 µs           0.50\n"
            "tinyllama eager forward 1x128         5000.0 µs  -                -              -\n");
  args.insert(args.end(), {"--seq", "64", "--policy", "coda"});
  const std::string chosen = cli(args).out;
  EXPECT_THAT(chosen, HasSubstr("tinyllama torch-compile"));
  EXPECT_EQ(chosen.find("tinyllama eager"), std::string::npos);
}

TEST(Compare, JudgesASavedPrediction) {
  const CliRun predicted = cli({"predict", "--model", "gpt2-xl", "--gpu", "h200", "--seq", "512",
                                "--policy", "eager,torch-compile", "--format", "json"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  const std::string file = temporary_file("prediction.json", predicted.out);
  const CliRun run = cli({"compare", file, kMeasured, "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("predictors"), json::array({"prediction"}));
  EXPECT_EQ(j.at("rows")[0].at("errors").at("prediction").at("cases"), 2);
}

// What `predict` writes of GPT-2 XL under eager, with options changed.
std::string saved(std::vector<std::string> changes) {
  std::vector<std::string> args = {"predict",  "--model",  "gpt2-xl",  "--gpu", "h200",
                                   "--seq",    "512",      "--policy", "eager", "--fidelity",
                                   "roofline", "--format", "json"};
  args.insert(args.end(), changes.begin(), changes.end());
  const CliRun run = cli(args);
  EXPECT_EQ(run.status, 0) << run.err;
  return temporary_file("saved.json", run.out);
}

TEST(CompareSaved, RefusesAPredictionOfSomethingThatWasNotMeasured) {
  struct Case {
    std::vector<std::string> changes;
    const char* said;
  };
  const std::vector<Case> cases = {
      {{"--gpu", "h100"}, "gpu = 'h100-sxm': the prediction is of another GPU"},
      {{"--dtype", "fp32"}, "dtype = 'fp32': no such block was measured"},
      {{"--model", "tinyllama"}, "model = 'tinyllama': no such block was measured"},
      {{"--batch", "3"}, "batch = '3': no such block was measured"},
      {{"--seq", "513"}, "seq = '513': no such block was measured"},
      {{"--phase", "decode", "--seq", "1", "--context", "77"}, "context = '77': no such block"},
      {{"--policy", "whole-block"}, "policy = 'whole-block': no such block was measured"}};
  for (const Case& c : cases) {
    const std::string file = saved(c.changes);
    const CliRun run = cli({"compare", file, kMeasured});
    EXPECT_EQ(run.status, 2) << c.said << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(file));
    EXPECT_THAT(run.err, HasSubstr(c.said));
    EXPECT_THAT(run.err, HasSubstr("allowed: "));
  }
}

TEST(CompareSaved, TheGpuOfTheCommandLineMustAgreeToo) {
  const std::string file = saved({});
  EXPECT_EQ(cli({"compare", file, kMeasured, "--gpu", "h200"}).status, 0);
  const CliRun run = cli({"compare", file, kMeasured, "--gpu", "a100"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--gpu = 'a100'"));
}

TEST(CompareSaved, AFileWithoutATypeIsOfBf16) {
  json j = json::parse(cli({"predict", "--model", "gpt2-xl", "--gpu", "h200", "--seq", "512",
                            "--policy", "eager", "--fidelity", "roofline", "--format", "json"})
                           .out);
  j.erase("dtype");
  EXPECT_EQ(cli({"compare", temporary_file("old.json", j.dump()), kMeasured}).status, 0);
  j["dtype"] = "fp8";
  const CliRun run = cli({"compare", temporary_file("new.json", j.dump()), kMeasured});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("dtype = 'fp8'"));
}

TEST(Compare, SaysWhenTheGpuIsNotTheMeasuredOne) {
  const std::string file =
      temporary_file("block.csv",
                     "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer\n"
                     "tinyllama,eager,forward,1,64,0,1,1,1,graph\n");
  temporary_file("meta.toml", "gpu = \"h200\"\n");
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  EXPECT_THAT(cli({"compare", folder.string()}).out, Not(HasSubstr("ANOTHER GPU")));
  EXPECT_THAT(cli({"compare", folder.string(), "--gpu", "a100"}).out,
              HasSubstr("ANOTHER GPU: predicted is a100-sxm-80gb, measured was h200"));
}

TEST(Compare, LeavesOutOtherTypes) {
  const std::string head =
      "model,execution,phase,batch,seq,context,dtype,ms_median,ms_min,ms_max,timer\n";
  const std::string file =
      temporary_file("block.csv", head +
                                      "tinyllama,eager,forward,1,64,0,bf16,1,1,1,graph\n"
                                      "tinyllama,eager,forward,1,64,0,fp32,2,2,2,graph\n");
  const std::vector<std::string> args = {"compare", file, "--gpu", "h200", "--format", "json"};
  std::vector<std::string> one = args;
  one.insert(one.end(), {"--dtype", "fp32"});
  EXPECT_EQ(json::parse(cli(args).out).at("cases").size(), 2U);
  EXPECT_EQ(json::parse(cli(one).out).at("cases").size(), 1U);
}

TEST(Compare, NeedsAGpuWhenTheMeasurementNamesNone) {
  const std::string file = temporary_file("gemm.csv",
                                          "m,n,k,us_median,us_min,us_max,tflops\n"
                                          "128,128,128,5,5,5,1\n");
  const CliRun run = cli({"compare", file});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--gpu"));
  EXPECT_EQ(cli({"compare", file, "--gpu", "h200"}).status, 0);
}

struct WrongFile {
  const char* name;
  const char* text;
  const char* said;
};

void PrintTo(const WrongFile& file, std::ostream* out) { *out << file.name; }

class CompareErrors : public ::testing::TestWithParam<WrongFile> {};

TEST_P(CompareErrors, ExitTwoAndNameTheFile) {
  const std::string file = temporary_file(GetParam().name, GetParam().text);
  const CliRun run = cli({"compare", file, "--gpu", "h200"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr(file));
  EXPECT_THAT(run.err, HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Files, CompareErrors,
    ::testing::Values(
        WrongFile{"empty.csv", "", "empty"}, WrongFile{"head.csv", "m,n,k,us_median\n", "no meas"},
        WrongFile{"short.csv", "m,n,k,us_median,us_min,us_max\n1,2\n", ":2:"},
        WrongFile{"word.csv", "m,n,k,us_median,us_min,us_max\n1,2,x,1,1,1\n", "k = 'x'"},
        WrongFile{"other.csv", "a,b\n1,2\n", "block.csv"},
        WrongFile{"model.csv",
                  "model,execution,phase,batch,seq,context,ms_median,ms_min,ms_max,timer\n"
                  "t,eager,sideways,1,1,0,1,1,1,g\n",
                  "phase = 'sideways'"}));

TEST(CompareInput, PredictionsMustBePredictions) {
  const std::pair<const char*, const char*> wrong[] = {
      {"{", ":1:2: JSON syntax error"},
      {R"({"schema":"fuseline.prediction/1","model":"m","gpu":"g","phase":"sideways"})",
       "phase = 'sideways'"},
      {R"({"schema":"fuseline.prediction/1","model":"m","gpu":"g","phase":"decode","batch":1e9})",
       "batch = '1000000000.0'"},
      {"[]", "schema"},
      {R"({"schema":"fuseline.prediction/2"})", "another kind"},
      {R"({"schema":"fuseline.prediction/1","model":3})", "model"},
  };
  for (const auto& [text, said] : wrong) {
    const CliRun run = cli({"compare", temporary_file("p.json", text), kMeasured});
    EXPECT_EQ(run.status, 2) << text;
    EXPECT_THAT(run.err, HasSubstr(said));
  }
}

// A byte that is no UTF-8 comes out as U+FFFD.
TEST(Compare, JsonIsUtf8WhateverTheMeasurementHolds) {
  const std::string file = temporary_file("caf\xE9.csv",
                                          "model,execution,phase,batch,seq,context,ms_median,"
                                          "ms_min,ms_max\n"
                                          "tinyllama,eager,forward,1,64,0,1,1,1\n"
                                          "tinyllama,caf\xE9,forward,1,64,0,1,1,1\n");
  const CliRun run = cli({"compare", file, "--gpu", "h200", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(json::parse(run.out).at("measurement").get<std::string>(),
              HasSubstr("caf\xEF\xBF\xBD"));
}

// Mutations of a good prediction are read or refused; nothing else happens.
void read_mutated_predictions(int rounds) {
  const std::string good = cli({"predict", "--model", "char-llama", "--gpu", "h200", "--seq", "64",
                                "--policy", "coda", "--format", "json"})
                               .out;
  ASSERT_FALSE(good.empty());
  std::mt19937 random(4711);
  const std::vector<std::string> pieces = {
      "1e400", "-1", "null", "{", "}", "[", "]", "\"", "\xff", "1e18", "99999999999999999999",
      ",",     ":"};
  int read = 0, refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text = good;
    const std::size_t at = random() % text.size();
    text.replace(at, random() % 3, pieces[random() % pieces.size()]);
    try {
      const SavedPredictions saved =
          load_predictions(temporary_file("mutated" + std::to_string(rounds) + ".json", text));
      for (const SavedPrediction& p : saved.list)
        ASSERT_TRUE(std::isfinite(to_us(p.estimate.time)));
      ++read;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(CompareInput, MutatedPredictionsNeverCrash) { read_mutated_predictions(150); }
TEST(LongCompareInput, MutatedPredictionsNeverCrash) { read_mutated_predictions(1500); }

TEST(CompareInput, ASelectionThatLeavesNothingIsWrong) {
  EXPECT_EQ(cli({"compare", kMeasured, "--model", "llama3-8b"}).status, 2);
  EXPECT_EQ(cli({"compare", kMeasured, "--policy", "codda"}).status, 2);
  EXPECT_EQ(cli({"compare"}).status, 2);
  EXPECT_EQ(cli({"compare", "/nonexistent"}).status, 2);
}

}  // namespace
}  // namespace fuseline
