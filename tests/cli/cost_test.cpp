// predict --price-per-hour, and what fits in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

CliRun predict(std::vector<std::string> more) {
  std::vector<std::string> args = {"predict", "--model",  "tinyllama", "--gpu",    "h200", "--seq",
                                   "128",     "--policy", "eager",     "--layers", "all"};
  args.insert(args.end(), more.begin(), more.end());
  return cli(args);
}

TEST(PredictCost, IsPriceTimesTimeOverTokens) {
  const CliRun run = predict({"--price-per-hour", "3.6", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const json parsed = json::parse(run.out);
  const json& p = parsed.at("predictions")[0];
  EXPECT_EQ(p.at("cost").at("tokens"), "prompt");
  EXPECT_EQ(p.at("cost").at("price_per_hour"), 3.6);
  // 0.001 a second; time in microseconds over 128 tokens, a million of them.
  EXPECT_NEAR(p.at("cost").at("per_million_tokens").get<double>(),
              0.001 * p.at("total").at("time_us").get<double>() / 128, 1e-12);
}

TEST(PredictCost, StandsInEveryFormat) {
  const CliRun table = predict({"--price-per-hour", "2"});
  ASSERT_EQ(table.status, 0) << table.err;
  expect_fits_100_columns(table.out);
  EXPECT_THAT(table.out, HasSubstr("cost: of a million prompt tokens, at 2 an hour"));
  const std::vector<std::string> csv =
      lines_of(predict({"--price-per-hour", "2", "--format", "csv"}).out);
  EXPECT_TRUE(csv[0].ends_with(
      "price_per_hour,cost_per_million_tokens,hbm_least_bytes,weights,kv,activations,"
      "time_us_low,time_us_high,hbm_bytes_low,hbm_bytes_high,gain_over,gain,gain_low,gain_high,"
      "energy_j,energy_j_low,energy_j_high"));
  EXPECT_THAT(csv[1], HasSubstr(",2,0."));
}

TEST(PredictMemory, IsShownWithoutAPrice) {
  const CliRun table = predict({});
  EXPECT_THAT(table.out, HasSubstr("GPU's 141.00 GB (131.32 GiB): fits"));
  EXPECT_THAT(table.out, Not(HasSubstr("cost")));
  const json parsed = json::parse(predict({"--format", "json"}).out);
  const json& memory = parsed.at("predictions")[0].at("memory");
  EXPECT_EQ(memory.at("capacity_bytes"), 141'000'000'000);
  EXPECT_EQ(memory.at("need_bytes"), memory.at("weights_bytes").get<std::int64_t>() +
                                         memory.at("kv_cache_bytes").get<std::int64_t>() +
                                         memory.at("activations_bytes").get<std::int64_t>());
  EXPECT_EQ(memory.at("fits"), true);
  EXPECT_FALSE(parsed.at("predictions")[0].contains("cost"));
}

TEST(PredictMemory, SaysHowManyGpusItTakes) {
  const CliRun run =
      cli({"predict", "--model", "llama2-70b", "--gpu", "rtx5090", "--phase", "decode", "--policy",
           "coda", "--layers", "all", "--price-per-hour", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("does not fit; 5 such GPUs"));
  EXPECT_THAT(run.out, HasSubstr("as if its memory"));
}

TEST(PredictMemory, IsNotShownOfAPartOfTheModel) {
  const CliRun run = cli({"predict", "--model", "tinyllama", "--seq", "64", "--policy", "eager"});
  EXPECT_THAT(run.out, Not(HasSubstr("memory:")));
}

TEST(PredictCost, RefusesPricesThatAreNone) {
  for (const char* price : {"0", "-1", "nan", "inf", "1e9", "two", "", "1.5x"}) {
    const CliRun run = predict({"--price-per-hour", price});
    EXPECT_EQ(run.status, 2) << price;
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("--price-per-hour"));
  }
  const CliRun alone = cli({"predict", "--price-per-hour", "2"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("--layers all"));
}

}  // namespace
}  // namespace fuseline
