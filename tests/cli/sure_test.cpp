// Bands and judgements on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

TEST(Sure, EveryEstimateOfAPredictionLiesInItsBand) {
  const CliRun run =
      cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "100", "--layers", "all",
           "--policy", "eager,torch-compile,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json all = json::parse(run.out);
  for (const json& p : all["predictions"]) {
    std::vector<json> estimates(p["kernels"].begin(), p["kernels"].end());
    estimates.push_back(p);
    estimates.push_back(p["total"]);
    for (const json& e : estimates) {
      EXPECT_LT(e["time_us_low"], e["time_us"]) << e["time_us"];
      EXPECT_GT(e["time_us_high"], e["time_us"]);
      const auto hbm =
          e["hbm_read_bytes"].get<std::int64_t>() + e["hbm_write_bytes"].get<std::int64_t>();
      EXPECT_LE(e["hbm_bytes_low"], hbm);
      EXPECT_GE(e["hbm_bytes_high"], hbm);
    }
    EXPECT_LE(p["gain_low"], p["gain"]);
    EXPECT_GE(p["gain_high"], p["gain"]);
    EXPECT_EQ(p["gain_over"], "eager");
  }
  EXPECT_EQ(all["predictions"][0]["verdict"], "the same");
  EXPECT_EQ(all["predictions"][1]["verdict"], "faster");
}

TEST(Sure, KernelsHaveBandsInTableCsvAndExplanation) {
  const std::vector<std::string> selection = {"--model", "tinyllama", "--gpu",    "h200",
                                              "--seq",   "100",       "--policy", "coda"};
  const auto with = [&](const std::string& command, std::vector<std::string> more) {
    std::vector<std::string> args = {command};
    args.insert(args.end(), selection.begin(), selection.end());
    args.insert(args.end(), more.begin(), more.end());
    return cli(args);
  };
  const CliRun table = with("predict", {"--kernels"});
  EXPECT_THAT(table.out, HasSubstr("90 %  HBM read"));
  expect_fits_100_columns(table.out);
  const std::vector<std::string> csv =
      lines_of(with("predict", {"--kernels", "--format", "csv"}).out);
  EXPECT_TRUE(
      csv[0].ends_with("split_k,time_us_low,time_us_high,hbm_bytes_low,hbm_bytes_high,energy_j"));
  for (const std::string& line : csv) EXPECT_FALSE(line.ends_with(",")) << line;
  const CliRun text = with("explain", {});
  EXPECT_THAT(text.out, HasSubstr("predicted "));
  EXPECT_THAT(text.out, HasSubstr("HBM "));
  const json plan = json::parse(with("explain", {"--format", "json"}).out)["plans"][0];
  for (const json& k : plan["kernels"]) {
    EXPECT_LT(k["time_us_low"], k["time_us"]);
    EXPECT_GT(k["time_us_high"], k["time_us"]);
    EXPECT_LE(k["hbm_bytes_low"], k["hbm_bytes"]);
  }
}

TEST(Sure, ARooflineHasNoBand) {
  const CliRun kernels = cli({"predict", "--model", "tinyllama", "--fidelity", "roofline",
                              "--policy", "coda", "--kernels", "--format", "csv"});
  // Four empty cells before the energy, which a roofline has.
  EXPECT_THAT(lines_of(kernels.out)[1], MatchesRegex(".*,,,,,[0-9.e-]+"));

  const CliRun run = cli({"predict", "--model", "tinyllama", "--fidelity", "roofline", "--policy",
                          "eager,coda", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_FALSE(json::parse(run.out)["predictions"][1].contains("time_us_low"));
}

TEST(Sure, TableSaysWhatIsTooCloseToCall) {
  const CliRun run = cli({"predict", "--model", "llama2-7b", "--gpu", "h200", "--policy",
                          "flash-attention,per-operator,composed,torch-compile"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("90 % band"));
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, HasSubstr("too close to call"));
}

TEST(Sure, CompareSaysHowManyCasesTheBandsHold) {
  const CliRun run = cli({"compare", "scenarios/measurements/h200-open-sizes"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("interval score"));
  EXPECT_THAT(run.out, HasSubstr("time decode"));
}

double width_of(const json& time) {
  return (time["time_us_high"].get<double>() - time["time_us_low"].get<double>()) /
         time["time_us"].get<double>();
}

// The errors of the few GPUs that figures were published of say little of the next one.
TEST(Sure, BandsOfAGemmAreWiderOnAGpuNeverMeasured) {
  const auto width = [](const char* gpu) {
    return width_of(json::parse(
        cli({"gemm", "--m", "2048", "--n", "2048", "--k", "2048", "--gpu", gpu, "--format", "json"})
            .out));
  };
  EXPECT_GT(width("b200"), width("h200"));
}

TEST(Sure, BandsOfABlockAreWiderOnAGpuNeverMeasured) {
  const auto width = [](const char* gpu) {
    return width_of(
        json::parse(cli({"predict", "--model", "llama3-8b", "--gpu", gpu, "--format", "json"})
                        .out)["predictions"][0]);
  };
  EXPECT_GT(width("b200"), width("h200"));
}

TEST(Sure, BandsTakeNoOptionsOfTheFit) {
  for (const char* option : {"--without", "--gpu", "--iterations"}) {
    const CliRun run = cli({"calibrate", "--bands", option, "4"});
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.err, HasSubstr(option));
  }
  const CliRun two = cli({"calibrate", "a", "b"});
  EXPECT_EQ(two.status, 2);
  EXPECT_THAT(two.err, HasSubstr("--bands"));
}

TEST(Judge, SeparatesWhereErrorsComeFrom) {
  const CliRun run = cli({"judge", "--gpu", "a100-sxm-80gb", "--worst", "2"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  EXPECT_THAT(run.out, HasSubstr("GPU never calibrated"));
  EXPECT_THAT(run.out, HasSubstr("framework's own slack"));
  EXPECT_THAT(run.out, HasSubstr("not predicted"));
  EXPECT_THAT(run.out, MatchesRegex("(.|\n)*kernel_time( +[0-9.]+){3}  [0-9]+ GPUs\n(.|\n)*"));
}

TEST(Judge, JsonHasEveryFigure) {
  const CliRun run = cli({"judge", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json all = json::parse(run.out);
  EXPECT_EQ(all["figures"].size(), 203U);
  for (const json& f : all["figures"]) {
    EXPECT_NE(f.contains("predicted"), f.contains("not_predicted")) << f["id"];
  }
}

TEST(Judge, RefusesWhatIsWrong) {
  EXPECT_EQ(cli({"judge", "--gpu", "h2000"}).status, 2);
  EXPECT_EQ(cli({"judge", "--gpu", "l40s"}).status, 2);
  EXPECT_EQ(cli({"judge", "--worst", "-1"}).status, 2);
  EXPECT_EQ(cli({"judge", "nowhere.csv"}).status, 2);
  EXPECT_EQ(cli({"judge", "--format", "xml"}).status, 2);
}

}  // namespace
}  // namespace fuseline
