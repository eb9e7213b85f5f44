// search --formats: what is refused. What is chosen: chosen_formats_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
