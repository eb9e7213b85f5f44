// search --formats: the best of the formats within the error budget. What is refused, and one
// search under the sanitizers: search_formats_test.cpp.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

CliRun search_within(const std::string& formats, const std::string& budget) {
  return cli({"search", "--model", "char-llama", "--gpu", "h200", "--seq", "32", "--policy", "coda",
              "--formats", formats, "--error-budget", budget, "--format", "json"});
}

TEST(ChosenFormats, AreTheFastestWhoseErrorIsWithinTheBudget) {
  const std::string formats = "bf16,int8,int4:32";
  const CliRun wide = search_within(formats, "0.2");
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
  const CliRun narrow = search_within(formats, between);
  ASSERT_EQ(narrow.status, 0) << narrow.err;
  const auto some = nlohmann::json::parse(narrow.out);
  EXPECT_TRUE(some.at("formats").at(1).at("within").get<bool>());
  EXPECT_FALSE(some.at("formats").at(2).at("within").get<bool>());
  EXPECT_EQ(some.at("time_us").get<double>(),
            std::min(some.at("formats").at(0).at("time_us").get<double>(),
                     some.at("formats").at(1).at("time_us").get<double>()));
}

}  // namespace
}  // namespace fuseline
