// Differences of two predictions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string saved(const std::string& name, const std::string& gpu, const std::string& policies,
                  const std::string& batch = "1") {
  const CliRun run = cli({"predict", "--model", "tinyllama", "--seq", "100", "--batch", batch,
                          "--gpu", gpu, "--policy", policies, "--format", "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  return temporary_file(name, run.out);
}

TEST(Diff, OfAPredictionAndItselfIsNothing) {
  const std::string a = saved("same.json", "h200", "eager,coda");
  const CliRun run = cli({"diff", a, a, "--fail-if", "slower=0%", "--format", "json"});
  EXPECT_EQ(run.status, 0) << run.err;
  const json all = json::parse(run.out);
  ASSERT_EQ(all["plans"].size(), 2U);
  for (const json& plan : all["plans"]) {
    EXPECT_EQ(plan["verdict"], "the same");
    EXPECT_EQ(plan["gain"], 1);
    for (const json& k : plan["kernels"]) EXPECT_EQ(k["hbm_bytes_difference"], 0);
  }
  EXPECT_THAT(cli({"diff", a, a}).out, HasSubstr("every kernel is the same"));
}

// The kernels' differences add up to the plan's, also where kernels come and go.
TEST(Diff, KernelsAddUpToThePlan) {
  const std::string a = saved("a.json", "h200", "eager,coda");
  const std::string b = saved("b.json", "h200", "eager,coda", "3");
  const json all = json::parse(cli({"diff", a, b, "--format", "json"}).out);
  ASSERT_EQ(all["plans"].size(), 2U);
  for (const json& plan : all["plans"]) {
    double sum = 0;
    for (const json& k : plan["kernels"]) sum += k["time_us_difference"].get<double>();
    const double whole = plan["time_us_b"].get<double>() - plan["time_us_a"].get<double>();
    EXPECT_NEAR(sum, whole, 1e-9 * plan["time_us_b"].get<double>());
    EXPECT_EQ(plan["verdict"], "slower");
    EXPECT_LE(plan["gain_low"], plan["gain"]);
    EXPECT_GE(plan["gain_high"], plan["gain"]);
  }
}

TEST(Diff, FailsWhereAPolicyIsSlowerThanAllowed) {
  const std::string fast = saved("fast.json", "h200", "coda");
  const std::string slow = saved("slow.json", "h200", "coda", "3");
  const CliRun run = cli({"diff", fast, slow, "--fail-if", "slower=3%"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("coda is slower by"));
  EXPECT_EQ(cli({"diff", slow, fast, "--fail-if", "slower=3%"}).status, 0);
  EXPECT_EQ(cli({"diff", fast, slow, "--fail-if", "slower=100000%"}).status, 0);
}

TEST(Diff, TakesScenarios) {
  const CliRun run =
      cli({"diff", "scenarios/llama2-7b-h100.toml", "scenarios/llama2-7b-h200.toml"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("coda: B takes"));
  expect_fits_100_columns(run.out);
}

TEST(Diff, RefusesWhatIsWrong) {
  const std::string a = saved("one.json", "h200", "eager");
  const std::string b = saved("other.json", "h200", "coda");
  for (const char* text : {"slower=3", "slower=x%", "slower=-1%", "faster=3%", ""}) {
    const CliRun run = cli({"diff", a, a, "--fail-if", text});
    EXPECT_EQ(run.status, 2) << text;
    EXPECT_THAT(run.err, HasSubstr("--fail-if")) << text;
  }
  EXPECT_EQ(cli({"diff", a}).status, 2);
  const CliRun none = cli({"diff", a, b});
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("no policy"));
  EXPECT_EQ(cli({"diff", a, "nowhere.json"}).status, 2);
}

}  // namespace
}  // namespace fuseline
