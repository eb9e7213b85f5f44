// Fuse or not, on the command line.
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> small(std::vector<std::string> more) {
  std::vector<std::string> args = {"verdict", "--model",  "tinyllama",
                                   "--gpu",   "h200",     "--seq",
                                   "333",     "--policy", "per-operator,coda"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(VerdictCommand, TableFitsTheTerminalAndNamesTheThreeVerdicts) {
  const CliRun run = cli({"verdict", "--model", "llama2-7b", "--gpu", "h200", "--seq", "2000"});
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  for (const char* part : {"faster", "slower", "too close to call", "limited by", "a full row",
                           "cannot be on chip alone", "in the place of per-operator"}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  EXPECT_EQ(run.err, "");
}

TEST(VerdictCommand, JsonHasGainBandTurningAndLimitOfEveryEdge) {
  const CliRun run = cli(small({"--format", "json"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const json v = json::parse(run.out);
  EXPECT_EQ(v["schema"], "fuseline.verdict/1");
  EXPECT_EQ(v["on"], "per-operator");
  int gains = 0;
  for (const json& e : v["edges"]) {
    EXPECT_FALSE(e["why"].get<std::string>().empty());
    if (e["verdict"] == "cannot") {
      EXPECT_FALSE(e.contains("gain"));
      continue;
    }
    ++gains;
    EXPECT_DOUBLE_EQ(e["gain"],
                     e["time_us_without"].get<double>() / e["time_us_with"].get<double>());
    EXPECT_LE(e["gain_low"], e["gain"]);
    EXPECT_GE(e["gain_high"], e["gain"]);
    ASSERT_EQ(e["turnings"].size(), 1U);
    EXPECT_EQ(e["turnings"][0]["size"], "M");
    EXPECT_EQ(e["turnings"][0]["asked"], 333);
  }
  EXPECT_GE(gains, 4);
  ASSERT_EQ(v["policies"].size(), 1U);
  EXPECT_EQ(v["policies"][0]["policy"], "coda");
}

// A policy's gain is the one that `predict` prints, up to what is a rounded quotient there.
TEST(VerdictCommand, PoliciesGainWhatPredictSays) {
  const json v = json::parse(cli(small({"--format", "json", "--quick"})).out);
  const CliRun run = cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "333",
                          "--policy", "per-operator,coda", "--format", "json"});
  const json p = json::parse(run.out)["predictions"][1];
  EXPECT_EQ(v["policies"][0]["gain"], p["gain"]);
  EXPECT_EQ(v["policies"][0]["gain_low"], p["gain_low"]);
  EXPECT_EQ(v["policies"][0]["verdict"], p["verdict"]);
  EXPECT_TRUE(v["policies"][0]["turnings"].empty());
}

TEST(VerdictCommand, CsvHasACellForEveryColumn) {
  const CliRun run = cli(small({"--format", "csv", "--quick"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> lines = lines_of(run.out);
  const auto cells = [](const std::string& line) {
    bool quoted = false;
    int count = 1;
    for (const char c : line) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) ++count;
    }
    return count;
  };
  ASSERT_GT(lines.size(), 8U);
  for (const std::string& line : lines) EXPECT_EQ(cells(line), cells(lines[0])) << line;
}

TEST(VerdictCommand, ARooflineHasNoEdges) {
  const std::string path = temporary_file("roofline.toml",
                                          "title = \"a bound\"\nmodel = \"tinyllama\"\ngpu = "
                                          "\"h200\"\nseq = 64\nfidelity = \"roofline\"\n"
                                          "policies = [\"coda\"]\n");
  const CliRun run = cli({"verdict", path});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("roofline.toml: fidelity = 'roofline'"));
  EXPECT_THAT(run.err, HasSubstr("hierarchy"));
}

TEST(VerdictCommand, JudgeSaysWhatOfAPublishedFusionIsNotTheFusion) {
  const CliRun run = cli({"judge", "--gpu", "a100-sxm-80gb"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("not the fusion"));
  expect_fits_100_columns(run.out);
}

}  // namespace
}  // namespace fuseline
