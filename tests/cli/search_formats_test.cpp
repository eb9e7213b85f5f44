// search --formats: formats within the error budget, the best of them, and what is refused.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kSmallSearch = {"search", "--model", "char-llama", "--gpu", "h200",
                                               "--seq",  "32",      "--policy",   "coda"};

std::vector<std::string> and_also(std::vector<std::string> more) {
  std::vector<std::string> args = kSmallSearch;
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(SearchFormats, ChoosesTheFastestFormatWhoseErrorIsWithinTheBudget) {
  const std::string formats = "bf16,int8,int4:32";
  const CliRun wide =
      cli(and_also({"--formats", formats, "--error-budget", "0.2", "--format", "json"}));
  ASSERT_EQ(wide.status, 0) << wide.err;
  const auto all = nlohmann::json::parse(wide.out);
  ASSERT_EQ(all.at("formats").size(), 3U);
  const auto error = [&](std::size_t i) {
    return all.at("formats").at(i).at("error").get<double>();
  };
  // Fewer bits, larger errors: 8 bits of mantissa, 7 and a sign, 3 and a sign.
  EXPECT_GT(error(0), 1e-4);
  EXPECT_LT(error(0), error(1));
  EXPECT_LT(2 * error(1), error(2));
  double best = INFINITY;
  for (const auto& f : all.at("formats")) {
    EXPECT_TRUE(f.at("within").get<bool>());
    best = std::min(best, f.at("time_us").get<double>());
  }
  EXPECT_EQ(all.at("time_us").get<double>(), best);

  // A budget between two errors leaves out the larger one.
  const std::string between = std::to_string((error(1) + error(2)) / 2);
  const CliRun narrow =
      cli(and_also({"--formats", formats, "--error-budget", between, "--format", "json"}));
  ASSERT_EQ(narrow.status, 0) << narrow.err;
  const auto some = nlohmann::json::parse(narrow.out);
  EXPECT_TRUE(some.at("formats").at(1).at("within").get<bool>());
  EXPECT_FALSE(some.at("formats").at(2).at("within").get<bool>());
  EXPECT_EQ(some.at("time_us").get<double>(),
            std::min(some.at("formats").at(0).at("time_us").get<double>(),
                     some.at("formats").at(1).at("time_us").get<double>()));
}

TEST(SearchFormats, RefusesABudgetThatNoFormatKeepsAndNamesTheSmallestError) {
  const CliRun run = cli(and_also({"--formats", "int4:32", "--error-budget", "0.0001"}));
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("the smallest is"));
  EXPECT_THAT(run.err, HasSubstr("int4:32"));
}

TEST(SearchFormats, RefusesWordsThatDoNotGoTogether) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--formats", "int4:32"},
           {"--error-budget", "0.1"},
           {"--formats", "int4:32", "--error-budget", "0"},
           {"--formats", "int4:32", "--error-budget", "0.1", "--weights", "int8"},
           {"--formats", "int4:32", "--error-budget", "0.1", "--phase", "train"},
           {"--formats", "int4:32", "--error-budget", "0.1", "--distribution",
            "azure-conversation"},
           {"--formats", "int4:32", "--error-budget", "0.1", "--plot", "x.svg"}}) {
    const CliRun run = cli(and_also(more));
    EXPECT_EQ(run.status, 2) << more.back();
    EXPECT_THAT(run.err, HasSubstr("error"));
  }
  const CliRun near = cli(and_also({"--formats", "int4:32,nvfp", "--error-budget", "0.1"}));
  EXPECT_EQ(near.status, 2);
  EXPECT_THAT(near.err, HasSubstr("nvfp4"));
}

}  // namespace
}  // namespace fuseline
