// --routing through the whole program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::vector<std::string> kSmallMixture = {
    "--model", "qwen3-30b-a3b", "--gpu", "h200", "--seq", "64", "--policy", "coda"};

CliRun run_with(const std::string& command, std::vector<std::string> more) {
  std::vector<std::string> args = {command};
  args.insert(args.end(), kSmallMixture.begin(), kSmallMixture.end());
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

// Every token goes to the same eight of 128 experts.
std::string skewed() {
  std::string text = "expert,tokens\n";
  for (int expert = 0; expert < 128; ++expert)
    text += std::to_string(expert) + (expert % 16 == 3 ? ",64\n" : ",0\n");
  return temporary_file("skewed.csv", text);
}

TEST(RoutingOption, ChangesWhatIsRead) {
  const auto bytes = [](const std::vector<std::string>& more) {
    std::vector<std::string> all = more;
    all.insert(all.end(), {"--format", "json"});
    const CliRun run = run_with("predict", all);
    EXPECT_EQ(run.status, 0) << run.err;
    return run.status == 0 ? json::parse(run.out) : json();
  };
  const json even = bytes({});
  const json few = bytes({"--routing", skewed()});
  const json uniform = bytes({"--routing", "uniform"});
  EXPECT_EQ(even.at("routing"), "expected");
  EXPECT_EQ(uniform.at("routing"), "uniform");
  EXPECT_EQ(bytes({"--routing", "expected"}), even);
  const auto read = [](const json& j) {
    return j.at("predictions")[0].at("hbm_compulsory_bytes").get<double>();
  };
  // Eight matrices of 128: the experts' weights are most of the block.
  EXPECT_LT(read(few), 0.3 * read(even));
  EXPECT_GT(read(uniform), read(even));
}

TEST(RoutingOption, IsTakenByEveryCommandOfABlock) {
  for (const char* command : {"explain", "verify"}) {
    const CliRun run = cli({command, "--model", "qwen3-30b-a3b", "--gpu", "h200", "--seq", "8",
                            "--policy", "coda", "--routing", "nowhere.csv"});
    EXPECT_EQ(run.status, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("nowhere.csv")) << command;
  }
  const CliRun sweep = run_with("sweep", {"--routing", "uniform"});
  EXPECT_EQ(sweep.status, 0) << sweep.err;
  const CliRun explained = run_with("explain", {"--routing", skewed()});
  EXPECT_THAT(explained.out, HasSubstr("skewed.csv"));
}

TEST(RoutingOption, IsRefusedWhereItDoesNotFit) {
  const CliRun dense = cli({"predict", "--model", "tinyllama", "--routing", "uniform"});
  EXPECT_EQ(dense.status, 2);
  EXPECT_THAT(dense.err, HasSubstr("--routing = 'uniform'"));
  const CliRun tokens = run_with("predict", {"--routing", skewed(), "--batch", "2"});
  EXPECT_EQ(tokens.status, 2);
  EXPECT_THAT(tokens.err, HasSubstr("512 rows"));
  EXPECT_THAT(cli({"predict", "--routing", "unifrom"}).err, HasSubstr("did you mean 'uniform'"));
}

}  // namespace
}  // namespace fuseline
