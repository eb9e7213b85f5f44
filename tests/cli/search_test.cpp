// The search on the command line.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::vector<std::string> small_search(std::vector<std::string> more) {
  std::vector<std::string> args = {"search", "--model",  "tinyllama",
                                   "--gpu",  "h200",     "--seq",
                                   "333",    "--policy", "per-operator,coda,whole-block"};
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST(SearchCommand, TableFitsTheTerminal) {
  const CliRun run = cli(small_search({"--pareto", "hbm"}));
  ASSERT_EQ(run.status, 0) << run.err;
  expect_fits_100_columns(run.out);
  for (const char* part : {"optimal in this space", "plans simulated", "in the place of",
                           "decision", "whole-block is not in the space", "in both"})
    EXPECT_THAT(run.out, HasSubstr(part));
}

TEST(SearchCommand, JsonHasTimeBoundAndAPlanThatPredictReads) {
  const CliRun run = cli(small_search({"--format", "json"}));
  ASSERT_EQ(run.status, 0) << run.err;
  const json r = json::parse(run.out);
  EXPECT_EQ(r["schema"], "fuseline.search/1");
  EXPECT_TRUE(r["optimal"].get<bool>());
  EXPECT_EQ(r["gap"], 0);
  EXPECT_LE(r["bound_us"], r["time_us"]);
  EXPECT_LT(r["time_us_low"], r["time_us"]);
  EXPECT_GT(r["evaluated"], 10);
  ASSERT_EQ(r["policies"].size(), 3U);
  EXPECT_FALSE(r["policies"][2]["in_space"].get<bool>());
  EXPECT_FALSE(r["decisions"].empty());
  const std::string plan = temporary_file("found.fuse", r["plan"].get<std::string>());
  const CliRun predicted = cli({"predict", "--model", "tinyllama", "--gpu", "h200", "--seq", "333",
                                "--plan", plan, "--format", "json"});
  ASSERT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_EQ(json::parse(predicted.out)["predictions"][0]["time_us"], r["time_us"]);
}

TEST(SearchCommand, WritesAPlanThatVerifies) {
  const std::string file = temporary_file("best.fuse", "");
  const CliRun run =
      cli({"search", "--model", "tinyllama", "--gpu", "h200", "--seq", "16", "--output", file});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("written"));
  const CliRun verified =
      cli({"verify", "--model", "tinyllama", "--gpu", "h200", "--seq", "16", "--plan", file});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  const CliRun explained =
      cli({"explain", "--model", "tinyllama", "--gpu", "h200", "--seq", "16", "--plan", file});
  EXPECT_EQ(explained.status, 0) << explained.err;
}

// Without sizes a plan is verified at those that search and predict take when nobody names any.
TEST(SearchCommand, APlanOfTheUsualSizesVerifiesWithoutNamingThem) {
  const std::string file = temporary_file("usual.fuse", "");
  const std::vector<std::string> block = {"--model", "tinyllama", "--gpu",
                                          "h200",    "--phase",   "decode"};
  const auto with = [&](const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> all = {command};
    all.insert(all.end(), block.begin(), block.end());
    all.insert(all.end(), more.begin(), more.end());
    return cli(all);
  };
  ASSERT_EQ(with("search", {"--output", file}).status, 0);
  const CliRun verified = with("verify", {"--plan", file});
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  const CliRun other = with("verify", {"--plan", file, "--context", "100"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, HasSubstr("is [100, 256] bf16 in the block of tinyllama and "
                                   "[2048, 256] bf16 in the plan"));
}

TEST(SearchCommand, ShapesThatVary) {
  const std::string file =
      temporary_file("shapes.csv", "batch,tokens,context,weight\n1,64,0,1\n2,300,0,3\n");
  const CliRun table = cli({"search", "--model", "tinyllama", "--gpu", "h200", "--policy", "coda",
                            "--distribution", file, "--buckets", "2"});
  ASSERT_EQ(table.status, 0) << table.err;
  expect_fits_100_columns(table.out);
  for (const char* part : {"best plan at each size", "padded to", "compile s", "2 x 300 tokens"})
    EXPECT_THAT(table.out, HasSubstr(part));
  const CliRun run = cli({"search", "--model", "tinyllama", "--gpu", "h200", "--policy", "coda",
                          "--distribution", file, "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json r = json::parse(run.out);
  EXPECT_EQ(r["schema"], "fuseline.distribution/1");
  EXPECT_EQ(r["shapes"].size(), 2U);
  EXPECT_LE(r["mean_us_plan_for_each"], r["mean_us_one_plan"]);
  EXPECT_LE(r["mean_us_buckets"], r["mean_us_padded"]);
}

TEST(SearchCommand, RequestsAreDecodedAndDrawn) {
  const std::string file = temporary_file("requests.csv", "prompt,generated\n40,8\n900,2\n");
  const std::string picture = temporary_file("buckets.svg", "");
  const CliRun run =
      cli({"search", "--model", "tinyllama", "--gpu", "h200", "--policy", "coda", "--phase",
           "decode", "--batch", "4", "--distribution", file, "--plot", picture});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("context 902"));
  EXPECT_THAT(run.out, HasSubstr("10 different"));
  EXPECT_THAT(read_text(picture), HasSubstr("at most so many buckets"));
}

struct RefusedOption {
  std::vector<std::string> more;
  std::vector<std::string> said;
};

TEST(SearchCommand, RefusesDistributions) {
  const std::string no_weight =
      temporary_file("none.csv", "batch,tokens,context,weight\n1,64,0,0\n");
  const std::string no_size = temporary_file("size.csv", "prompt,generated\n7,1\nmany,1\n");
  for (const RefusedOption& r : std::vector<RefusedOption>{
           {{"no-such.csv"}, {"no-such.csv"}},
           {{"azure-cod"}, {"--distribution", "did you mean 'azure-code'"}},
           {{no_weight}, {"none.csv", "weight", "is 0 on every line"}},
           {{no_size}, {"size.csv:3", "prompt = 'many'", "a whole number of at least 1"}},
           {{"azure-code", "--calls", "0"}, {"--calls", "'0'"}},
           {{"azure-code", "--sizes", "65"}, {"--sizes", "'65'"}},
           {{"azure-code", "--compile-seconds", "-1"}, {"--compile-seconds", "'-1'"}},
           {{"azure-code", "--context", "5"}, {"--context", "stands beside --distribution"}},
           {{"azure-code", "--seq", "5"}, {"--seq", "stands beside --distribution"}},
           {{"azure-code", "--objective", "hbm"}, {"--objective", "shapes that vary"}}}) {
    std::vector<std::string> args = {"search", "--model", "tinyllama", "--distribution"};
    args.insert(args.end(), r.more.begin(), r.more.end());
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    for (const std::string& part : r.said) EXPECT_THAT(run.err, HasSubstr(part));
  }
}

TEST(SearchCommand, RefusesWithTheOptionAndWhatIsAllowed) {
  for (const RefusedOption& r : std::vector<RefusedOption>{
           {{"--objective", "tiem"}, {"--objective", "'tiem'", "time, hbm, launches", "did you"}},
           {{"--budget", "0"}, {"--budget", "'0'"}},
           {{"--budget", "soon"}, {"--budget", "'soon'"}},
           {{"--pareto", "time"}, {"--pareto", "is the objective already"}},
           {{"--keep-together", "qkv,down"}, {"--keep-together", "'qkv,down'", "leaves no plan"}},
           {{"--keep-apart", "qkv"}, {"--keep-apart", "'qkv'", "not a pair"}},
           {{"--keep-apart", "qkv,donw"}, {"'qkv,donw'", "did you mean 'down'"}},
           {{"--buckets", "2"}, {"--buckets", "needs shapes that vary"}},
           {{"--kernels", "all"}, {"--kernels", "own, chains, any"}},
           {{"--sizes", "4"}, {"--sizes", "needs shapes that vary"}},
           {{"--plot", "a.svg"}, {"--plot", "with --distribution"}},
           {{"--output", "no/such/folder/a.fuse"}, {"--output"}}}) {
    const CliRun run = cli(small_search(r.more));
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    for (const std::string& part : r.said) EXPECT_THAT(run.err, HasSubstr(part));
  }
}

}  // namespace
}  // namespace fuseline
