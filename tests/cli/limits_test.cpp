// fuseline limits: what it prints, and what it refuses.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;

TEST(LimitsCommand, GivesLeastTiledAndPredictedOfEveryProduct) {
  const CliRun run =
      cli({"limits", "--model", "tinyllama", "--gpu", "h200", "--seq", "256", "--format", "json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const auto out = nlohmann::json::parse(run.out);
  EXPECT_EQ(out.at("schema"), "fuseline.limits/1");
  EXPECT_LE(out.at("least_bytes"), out.at("predicted_bytes"));
  ASSERT_GE(out.at("kernels").size(), 5U);
  ASSERT_GE(out.at("chains").size(), 1U);
  for (const auto& kernel : out.at("kernels")) {
    EXPECT_LE(kernel.at("l2").at("least_bytes"), kernel.at("l2").at("predicted_bytes"))
        << kernel.at("name");
    double before = INFINITY;
    for (const auto& point : kernel.at("curve")) {
      if (point.at("tiled").is_null()) continue;
      const double tiled = point.at("tiled").at("bytes");
      EXPECT_LE(point.at("least_bytes").get<double>(), tiled) << kernel.at("name");
      EXPECT_LE(tiled, before) << kernel.at("name");  // more memory never moves more
      before = tiled;
    }
    EXPECT_LT(before, INFINITY);
    // Pairs and heads stay together, so with room for all each matrix still moves once.
    EXPECT_LE(before, kernel.at("compulsory_bytes").get<double>() * (1 + 1e-6))
        << kernel.at("name");
  }
}

TEST(LimitsCommand, DrawsACurveAndWritesItAsCsv) {
  const TemporaryFolder folder("fuseline-limits");
  const std::string svg = (folder.path() / "curve.svg").string();
  const CliRun run = cli({"limits", "--model", "tinyllama", "--seq", "64", "--curve", "--kernel",
                          "gate_up + down", "--plot", svg, "--format", "csv"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              testing::StartsWith("kernel,loops,capacity_bytes,least_bytes,tiled_bytes,tiles\n"
                                  "gate_up + down,"));
  EXPECT_THAT(read_text(svg), HasSubstr("the best tiling"));
}

TEST(LimitsCommand, PrintsTablesOfAHundredColumns) {
  const CliRun table = cli({"limits", "--model", "llama2-7b", "--gpu", "h200", "--seq", "512"});
  ASSERT_EQ(table.status, 0) << table.err;
  expect_fits_100_columns(table.out);
  EXPECT_THAT(table.out, HasSubstr("gate_up + down"));
}

TEST(LimitsCommand, RefusesWhatHasNoCurve) {
  const CliRun kernel =
      cli({"limits", "--model", "tinyllama", "--seq", "64", "--curve", "--kernel", "gateup"});
  EXPECT_EQ(kernel.status, 2);
  EXPECT_THAT(kernel.err, HasSubstr("gate_up"));
  EXPECT_EQ(cli({"limits", "--kernel", "gate_up"}).status, 2);
  EXPECT_EQ(cli({"limits", "--format", "csv"}).status, 2);
  EXPECT_EQ(cli({"limits", "--curve", "--plot", "x.svg"}).status, 2);
  EXPECT_EQ(cli({"limits", "--policy", "coda,eager"}).status, 2);
}

}  // namespace
}  // namespace fuseline
