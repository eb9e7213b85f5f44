#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "model/policy.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Small enough for a sanitizer build.
const std::vector<std::string> kSmall = {"predict", "--model", "tinyllama", "--gpu",
                                         "h200",    "--seq",   "256"};

CliRun predict_in(std::vector<std::string> more) {
  std::vector<std::string> args = kSmall;
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

void expect_bytes(const json& object, const char* key) {
  ASSERT_TRUE(object.contains(key)) << key;
  EXPECT_TRUE(object[key].is_number_integer()) << key;
  EXPECT_GE(object[key].get<std::int64_t>(), 0) << key;
}

void expect_time(const json& object, const char* key) {
  ASSERT_TRUE(object.contains(key)) << key;
  ASSERT_TRUE(object[key].is_number()) << key;
  EXPECT_GT(object[key].get<double>(), 0) << key;
}

void expect_kernel(const json& k) {
  static const std::set<std::string> kinds = {"gemm",      "attention", "norm",
                                              "pointwise", "reduction", "block"};
  static const std::set<std::string> bounds = {"tensor", "hbm", "l2", "smem", "launch", "sync"};
  EXPECT_TRUE(k.at("name").is_string());
  EXPECT_EQ(kinds.count(k.at("kind").get<std::string>()), 1U) << k.at("kind");
  EXPECT_EQ(bounds.count(k.at("bound").get<std::string>()), 1U) << k.at("bound");
  ASSERT_TRUE(k.at("operators").is_array());
  ASSERT_TRUE(k.at("tile").is_array());
  for (const json& edge : k.at("tile")) EXPECT_TRUE(edge.is_number_integer());
  expect_time(k, "time_us");
  for (const char* key : {"flops", "hbm_read_bytes", "hbm_write_bytes", "l2_bytes"}) {
    expect_bytes(k, key);
  }
}

TEST(PredictJson, HasTheKeysAndTypesOfTheContract) {
  const CliRun run = predict_in({"--format", "json", "--policy", "eager,coda"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("schema"), "fuseline.prediction/1");
  EXPECT_EQ(j.at("model"), "tinyllama");
  EXPECT_EQ(j.at("gpu"), "h200");
  EXPECT_EQ(j.at("phase"), "forward");
  EXPECT_EQ(j.at("batch"), 1);
  EXPECT_EQ(j.at("seq"), 256);
  EXPECT_EQ(j.at("context"), 0);
  ASSERT_EQ(j.at("predictions").size(), 2U);
  for (const json& p : j.at("predictions")) {
    EXPECT_TRUE(p.at("policy").is_string());
    EXPECT_EQ(p.at("fidelity"), "hierarchy");
    expect_time(p, "time_us");
    for (const char* key : {"flops", "hbm_read_bytes", "hbm_write_bytes", "l2_bytes",
                            "hbm_compulsory_bytes", "launches"}) {
      expect_bytes(p, key);
    }
    ASSERT_FALSE(p.at("kernels").empty());
    EXPECT_EQ(p.at("launches"), p.at("kernels").size());
    for (const json& k : p.at("kernels")) expect_kernel(k);
  }
  EXPECT_EQ(j.at("predictions")[0].at("policy"), "eager");
  EXPECT_EQ(j.at("predictions")[1].at("policy"), "coda");
}

TEST(PredictJson, GemmIsOneKernelObject) {
  const CliRun run =
      cli({"gemm", "--m", "128", "--n", "256", "--k", "512", "--gpu", "h200", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json k = json::parse(run.out);
  expect_kernel(k);
  EXPECT_EQ(k.at("kind"), "gemm");
  EXPECT_EQ(k.at("flops"), 2LL * 128 * 256 * 512);
}

TEST(PredictTable, FitsAndNamesWhatItAssumes) {
  const CliRun run = predict_in({"--kernels"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  for (const PolicyInfo& policy : policies()) EXPECT_THAT(run.out, HasSubstr(policy.name));
  EXPECT_THAT(run.out, HasSubstr("SM clock"));
  EXPECT_THAT(run.out, HasSubstr("TB/s"));
  EXPECT_THAT(run.out, HasSubstr("limits:"));
  EXPECT_THAT(run.out, Not(HasSubstr("UNCALIBRATED")));
}

TEST(PredictTable, MarksAnUncalibratedGpu) {
  const CliRun run = cli(
      {"predict", "--model", "tinyllama", "--gpu", "rtx4090", "--seq", "128", "--policy", "eager"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("UNCALIBRATED"));
}

TEST(PredictTable, SaysHowWellAGpuWasChecked) {
  const std::vector<std::string> small = {"predict", "--model",    "tinyllama", "--gpu",
                                          "h100",    "--seq",      "128",       "--policy",
                                          "eager",   "--fidelity", "roofline"};
  const CliRun run = cli(small);
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, Not(HasSubstr("UNCALIBRATED")));
  EXPECT_THAT(run.out, HasSubstr("CHECKED: no constant was fitted on this GPU"));
  EXPECT_THAT(run.out, HasSubstr("h100-fuseline, 2026-11-22"));
  std::vector<std::string> as_json = small;
  as_json.insert(as_json.end(), {"--format", "json"});
  const json j = json::parse(cli(as_json).out);
  EXPECT_EQ(j.at("gpu_calibrated"), false);
  EXPECT_EQ(j.at("gpu_standing"), "checked");
  EXPECT_EQ(j.at("gpu_checks").at(0).at("blocks"), 18);
}

TEST(ListGpus, SayWhichAreFittedAndChecked) {
  const json j = json::parse(cli({"list", "gpus", "--format", "json"}).out);
  std::map<std::string, std::pair<bool, std::string>> found;
  for (const json& g : j.at("gpus")) found[g.at("name")] = {g.at("calibrated"), g.at("standing")};
  EXPECT_EQ(found.at("h200"), std::make_pair(true, std::string("fitted")));
  EXPECT_EQ(found.at("h100-sxm"), std::make_pair(false, std::string("checked")));
  EXPECT_EQ(found.at("rtx4090"), std::make_pair(false, std::string("uncalibrated")));
  expect_fits_100_columns(cli({"list", "gpus"}).out);
}

TEST(SeveralGpus, AreRefusedByName) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& value) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.out;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("several GPUs are not built yet"));
    EXPECT_THAT(run.err, HasSubstr(value));
  };
  for (const char* gpu : {"8xh100", "2xh200", "h100x8", "8*h100"}) {
    for (const char* command : {"predict", "sweep", "explain"}) {
      refused({command, "--gpu", gpu, "--policy", "coda"}, gpu);
    }
    refused({"gemm", "--m", "8", "--n", "8", "--k", "8", "--gpu", gpu}, gpu);
  }
  EXPECT_THAT(cli({"predict", "--gpu", "8xh100"}).err, HasSubstr("did you mean 'h100'?"));
  for (const char* option : {"--gpus", "--tp", "--tensor-parallel-size", "--num-gpus"}) {
    refused({"predict", option, "8"}, option);
    refused({"predict", std::string(option) + "=8"}, option);
  }
  const auto scenario = [](const std::string& more) {
    return temporary_file("several.toml", "title = \"t\"\nmodel = \"tinyllama\"\n" + more);
  };
  refused({"predict", scenario("gpu = \"8xh100\"\n")}, "several.toml: gpu = '8xh100'");
  refused({"predict", scenario("gpu = \"h100\"\ngpus = 8\n")}, "several.toml:4:8: gpus = '8'");
  refused({"predict", scenario("gpu = \"h100\"\ntp = 2\n")}, "tp");
}

TEST(PredictTable, AllFormatsAgreeOnTheTime) {
  const json j = json::parse(predict_in({"--policy", "eager", "--format", "json"}).out);
  const std::vector<std::string> csv =
      lines_of(predict_in({"--policy", "eager", "--format", "csv"}).out);
  ASSERT_EQ(csv.size(), 2U);
  char us[32];
  std::snprintf(us, sizeof us, ",%.3f,", j.at("predictions")[0].at("time_us").get<double>());
  EXPECT_THAT(csv[1], HasSubstr(us));
}

TEST(PredictTable, DecodeDefaultsToOneTokenAgainst2048) {
  const json j = json::parse(cli({"predict", "--model", "tinyllama", "--phase", "decode",
                                  "--policy", "eager", "--format", "json"})
                                 .out);
  EXPECT_EQ(j.at("seq"), 1);
  EXPECT_EQ(j.at("context"), 2048);
}

TEST(PredictLayers, MultiplyTheBlock) {
  const json j =
      json::parse(predict_in({"--policy", "eager", "--layers", "3", "--format", "json"}).out);
  const json& p = j.at("predictions")[0];
  EXPECT_EQ(p.at("total").at("hbm_read_bytes").get<std::int64_t>(),
            3 * p.at("hbm_read_bytes").get<std::int64_t>());
  EXPECT_NEAR(p.at("total").at("time_us").get<double>(), 3 * p.at("time_us").get<double>(), 1e-6);
  EXPECT_EQ(p.at("total").at("whole_model"), false);
}

TEST(PredictLayers, AllAddsTheEndsAndGivesTokensPerSecond) {
  const CliRun run = predict_in({"--policy", "eager,coda", "--layers", "all", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json parsed = json::parse(run.out);  // a range-for does not keep a temporary alive
  for (const json& p : parsed.at("predictions")) {
    const json& total = p.at("total");
    EXPECT_EQ(total.at("whole_model"), true);
    EXPECT_EQ(total.at("layers"), 22);
    EXPECT_GT(total.at("time_us").get<double>(), 22 * p.at("time_us").get<double>());
    EXPECT_NEAR(total.at("tokens_per_s").get<double>(),
                256 / (total.at("time_us").get<double>() * 1e-6), 1);
  }
  const CliRun table = predict_in({"--policy", "eager", "--layers", "all"});
  EXPECT_THAT(table.out, HasSubstr("tokens/s"));
  expect_fits_100_columns(table.out);
}

TEST(PredictTraining, WithoutNamesTakesThePoliciesThatTrain) {
  const CliRun run = predict_in({"--phase", "train", "--seq", "64", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json parsed = json::parse(run.out);
  std::vector<std::string> names;
  for (const json& p : parsed.at("predictions")) names.push_back(p.at("policy"));
  EXPECT_THAT(names, testing::Contains("coda"));
  EXPECT_THAT(names, testing::Not(testing::Contains("tensorrt-llm")));
}

TEST(PredictScenario, OptionsOverrideTheFileAndMeasurementsAppear) {
  const std::string scenario = std::string(FUSELINE_SOURCE_DIR) + "/scenarios/llama2-7b-h200.toml";
  const CliRun run =
      cli({"predict", scenario, "--seq", "512", "--policy", "eager,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json j = json::parse(run.out);
  EXPECT_EQ(j.at("seq"), 512);
  EXPECT_NEAR(j.at("predictions")[0].at("measured").at("time_us").get<double>(), 425.89, 1e-6);
  EXPECT_FALSE(j.at("predictions")[1].contains("measured"));

  const CliRun table = cli({"predict", scenario, "--seq", "512", "--policy", "eager,coda"});
  EXPECT_THAT(table.out, HasSubstr("measured µs"));
  EXPECT_THAT(table.out, HasSubstr("425.9"));
  expect_fits_100_columns(table.out);
}

TEST(PredictScenario, AnotherGpuIsNotSetBesideTheMeasurements) {
  const std::string scenario = std::string(FUSELINE_SOURCE_DIR) + "/scenarios/llama2-7b-h200.toml";
  const json j = json::parse(cli({"predict", scenario, "--gpu", "h100", "--seq", "512", "--policy",
                                  "eager", "--format", "json"})
                                 .out);
  EXPECT_FALSE(j.at("predictions")[0].contains("measured"));
}

TEST(PredictOutput, WritesAWholeFileOrNone) {
  const std::string path = temporary_file("result.json", "old");
  const CliRun run = predict_in({"--policy", "eager", "--format", "json", "--output", path});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "");
  std::ifstream in(path);
  EXPECT_EQ(json::parse(in).at("model"), "tinyllama");

  const std::string kept = temporary_file("kept.json", "old");
  EXPECT_EQ(predict_in({"--policy", "eagre", "--output", kept}).status, 2);
  std::ifstream again(kept);
  std::string text;
  again >> text;
  EXPECT_EQ(text, "old");
  const auto folder = std::filesystem::path(kept).parent_path();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);  // no draft is left
}

TEST(PredictOutput, AFolderThatDoesNotExistIsWrongInput) {
  const CliRun run = predict_in({"--policy", "eager", "--output", "/nonexistent/x.json"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--output"));
}

// Each of these must exit with 2, print nothing on standard output, and name what is wrong.
struct WrongInput {
  std::vector<std::string> args;
  std::vector<std::string> said;
};

void PrintTo(const WrongInput& input, std::ostream* out) {
  for (const std::string& arg : input.args) *out << arg << ' ';
}

class PredictErrors : public ::testing::TestWithParam<WrongInput> {};

TEST_P(PredictErrors, ExitTwoAndSayWhy) {
  const CliRun run = cli(GetParam().args);
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  for (const std::string& part : GetParam().said) EXPECT_THAT(run.err, HasSubstr(part));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, PredictErrors,
    ::testing::Values(
        WrongInput{{"predict", "--model", "lama2-7b"}, {"--model", "did you mean 'llama2-7b'?"}},
        WrongInput{{"predict", "--gpu", "h2000"}, {"--gpu", "did you mean 'h200'?"}},
        WrongInput{{"predict", "--policy", "eager,codda"}, {"--policy", "did you mean 'coda'?"}},
        WrongInput{{"predict", "--policy", "eager,,coda"}, {"--policy", "a name is missing"}},
        WrongInput{{"predict", "--policy", "coda,coda"}, {"--policy", "twice"}},
        WrongInput{{"predict", "--policy", ""}, {"--policy"}},
        WrongInput{{"predict", "--phase", "forwrd"}, {"--phase", "did you mean 'forward'?"}},
        WrongInput{{"predict", "--fidelity", "rofline"},
                   {"--fidelity", "did you mean 'roofline'?"}},
        WrongInput{{"predict", "--format", "jsn"}, {"--format", "did you mean 'json'?"}},
        WrongInput{{"predict", "--dtype", "bf8"}, {"--dtype", "bf16, fp16, fp32"}},
        WrongInput{{"predict", "--batch", "0"}, {"--batch", "'0'", "from 1 to 16777216"}},
        WrongInput{{"predict", "--batch", "-1"}, {"--batch", "'-1'"}},
        WrongInput{{"predict", "--batch", "1.5"}, {"--batch", "'1.5'", "whole number"}},
        WrongInput{{"predict", "--batch", "2k"}, {"--batch", "'2k'"}},
        WrongInput{{"predict", "--seq", "99999999999999999999"}, {"--seq", "too large"}},
        WrongInput{{"predict", "--seq", "16777217"}, {"--seq", "too large"}},
        WrongInput{{"predict", "--batch", "65536", "--seq", "65536"}, {"too many"}},
        WrongInput{{"predict", "--seq", ""}, {"--seq", "whole number"}},
        WrongInput{{"predict", "--model", "qwen3-30b-a3b", "--batch", "129", "--seq", "16384",
                    "--fidelity", "roofline"},
                   {"sort_places", "2113536 rows of 8", "at most 2097152 rows", "batch", "seq"}},
        WrongInput{{"predict", "--layers", "some"}, {"--layers"}},
        WrongInput{{"predict", "--layers", "0"}, {"--layers"}},
        WrongInput{{"predict", "--phase", "decode", "--seq", "8", "--context", "4"},
                   {"--context", "shorter"}},
        WrongInput{{"predict", "--context", "4096"}, {"--context", "decode"}},
        WrongInput{{"predict", "nothing.toml"}, {"nothing.toml"}},
        WrongInput{{"predict", "a.toml", "b.toml"}, {"b.toml"}},
        WrongInput{{"predict", "--phase", "train", "--policy", "whole-block"}, {"train", "coda"}},
        WrongInput{{"gemm", "--m", "1", "--n", "2", "--gpu", "h200"}, {"--k", "is missing"}},
        WrongInput{{"gemm", "--m", "1", "--n", "2", "--k", "3"}, {"--gpu", "is missing", "h200"}},
        WrongInput{{"gemm", "--m", "0", "--n", "2", "--k", "3", "--gpu", "h200"}, {"--m", "'0'"}},
        WrongInput{{"list"}, {"TOPIC", "models"}},
        WrongInput{{"list", "modls"}, {"did you mean 'models'?"}}));

TEST(PredictErrorsInFiles, NameFileLineAndField) {
  const std::string broken = temporary_file("broken.toml", "model = \"llama2-7b\"\ngpu = \n");
  const CliRun syntax = cli({"predict", broken});
  EXPECT_EQ(syntax.status, 2);
  EXPECT_THAT(syntax.err, HasSubstr(broken + ":2:"));

  const std::string negative = temporary_file(
      "negative.toml", "title = \"t\"\nmodel = \"llama2-7b\"\ngpu = \"h200\"\nseq = -5\n");
  const CliRun value = cli({"predict", negative});
  EXPECT_EQ(value.status, 2);
  EXPECT_THAT(value.err, HasSubstr("seq"));
  EXPECT_THAT(value.err, HasSubstr("-5"));
  EXPECT_EQ(value.out, "");
}

TEST(List, NamesEverythingInEveryFormat) {
  for (const char* topic :
       {"models", "gpus", "architectures", "memory", "policies", "scenarios", "operators"}) {
    const CliRun table = cli({"list", topic});
    ASSERT_EQ(table.status, 0) << table.err;
    expect_fits_100_columns(table.out);
    const json j = json::parse(cli({"list", topic, "--format", "json"}).out);
    ASSERT_TRUE(j.at(topic).is_array());
    ASSERT_GT(j.at(topic).size(), 3U);
    EXPECT_EQ(lines_of(cli({"list", topic, "--format", "csv"}).out).size(), j.at(topic).size() + 1);
    for (const json& entry : j.at(topic)) {
      EXPECT_THAT(table.out, HasSubstr(entry.at("name").get<std::string>()));
    }
  }
}

TEST(Predict, ACustomBlockMakesAWholeModel) {
  const std::string file = temporary_file("custom.toml",
                                          "title = \"t\"\nmodel = \"tinyllama\"\ngpu = \"h200\"\n"
                                          "seq = 128\nlayers = \"all\"\npolicies = [\"custom\"]\n"
                                          "[custom]\non_chip = [\"down -> residual2\"]\n");
  const CliRun run = cli({"predict", file, "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json p = json::parse(run.out).at("predictions").at(0);
  EXPECT_EQ(p.at("policy"), "custom");
  EXPECT_TRUE(p.at("total").at("whole_model"));
  EXPECT_EQ(p.at("total").at("layers"), 22);
  EXPECT_TRUE(p.at("memory").at("fits"));
}

TEST(Predict, SizesThatTakeMinutesNameTheLargestThatDoesNot) {
  const std::vector<std::string> block = {"predict", "--model", "llama2-7b", "--gpu", "h100"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), block.begin(), block.end());
    return cli(more);
  };
  const CliRun run = with({"--policy", "unfused", "--seq", "524288"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--seq = '524288'"));
  const std::size_t at = run.err.find("at most ");
  ASSERT_NE(at, std::string::npos) << run.err;
  const std::string largest = std::to_string(std::stoll(run.err.substr(at + 8)));
  const std::string beyond = std::to_string(std::stoll(largest) + 1);
  EXPECT_EQ(with({"--policy", "unfused", "--seq", beyond}).status, 2);
  EXPECT_EQ(with({"--policy", "unfused", "--seq", largest, "--fidelity", "roofline"}).status, 0);
  EXPECT_EQ(with({"--policy", "unfused", "--seq", "524288", "--fidelity", "roofline"}).status, 0);
  // With one token a sequence there are still too many.
  const CliRun batch =
      with({"--policy", "unfused", "--phase", "decode", "--batch", "16777216", "--context", "16"});
  EXPECT_EQ(batch.status, 2);
  EXPECT_THAT(batch.err, HasSubstr("--batch = '16777216'"));
}

// Nothing that a terminal obeys comes from a file to the screen.
TEST(Predict, TitlesAreShownWithoutControlCharacters) {
  const std::string file =
      temporary_file("title.toml",
                     "title = \"a\\u001b[2Jb\"\nname = \"n\"\nfamily = \"llama\"\nsource = \"s\"\n"
                     "layers = 1\nD = 64\nF = 128\nH = 2\nV = 100\nmax_positions = 64\nnorm = "
                     "\"rmsnorm\"\nnorm_eps = 1e-5\nactivation = \"swiglu\"\n");
  const CliRun run =
      cli({"predict", "--model", file, "--gpu", "h200", "--seq", "64", "--policy", "coda"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("a\\x1b[2Jb"));
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fuseline
