#include "sim/gpu/standing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/data_dir.h"
#include "base/error.h"
#include "base/toml_file.h"
#include "sim/judge/standard_predictors.h"
#include "sim/judge/validation.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

const std::string kCheck =
    "[[checked]]\nmeasurements = \"m\"\npolicies = [\"coda\", \"eager\"]\nblocks = 18\n"
    "mean_error = { value = 3.1, unit = \"%\" }\nworst_error = { value = 7.5, unit = \"%\" }\n"
    "source = \"compare\"\ndate = \"2026-11-22\"\n";

std::string with(const std::string& old, const std::string& replacement) {
  std::string text = kCheck;
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return text.replace(at, old.size(), replacement);
}

std::vector<GpuCheck> read_gpu_checks(const std::string& text) {
  return read_checks(TomlTable::parse(text, "g.toml"));
}

std::string refused_field(const std::string& text) {
  try {
    read_gpu_checks(text);
  } catch (const InputError& error) {
    return error.problem().field;
  }
  return "accepted";
}

TEST(Standing, IsFittedCheckedOrNeither) {
  Gpu gpu;
  EXPECT_EQ(standing_of(gpu), Standing::uncalibrated);
  EXPECT_THAT(standing_text(gpu), HasSubstr("UNCALIBRATED"));
  gpu.checks = read_gpu_checks(kCheck);
  EXPECT_EQ(standing_of(gpu), Standing::checked);
  EXPECT_THAT(standing_text(gpu), HasSubstr("18 blocks of coda and eager: mean error 3.1 %, "
                                            "worst 7.5 % (m, 2026-11-22)"));
  gpu.calibrated = true;
  EXPECT_EQ(standing_of(gpu), Standing::fitted);
  EXPECT_EQ(standing_text(gpu), "");
}

TEST(Checks, AreReadAsWritten) {
  const GpuCheck c = read_gpu_checks(kCheck + kCheck).at(1);
  EXPECT_EQ(c.measurements, "m");
  EXPECT_EQ(c.policies, (std::vector<std::string>{"coda", "eager"}));
  EXPECT_TRUE(c.looked_at.empty());
  EXPECT_EQ(read_gpu_checks(with("blocks = 18", "looked_at = [\"unfused\"]\nblocks = 18"))
                .at(0)
                .looked_at,
            (std::vector<std::string>{"unfused"}));
  EXPECT_EQ(c.blocks, 18);
  EXPECT_DOUBLE_EQ(c.mean_error, 0.031);
  EXPECT_DOUBLE_EQ(c.worst_error, 0.075);
  EXPECT_EQ(c.source, "compare");
  EXPECT_EQ(c.date, "2026-11-22");
}

TEST(Checks, NameWhatIsWrong) {
  EXPECT_THAT(refused_field(with("blocks = 18", "blocks = 0")), HasSubstr("blocks"));
  EXPECT_THAT(refused_field(with("\"coda\"", "\"codda\"")), HasSubstr("policies"));
  EXPECT_THAT(refused_field(with("blocks = 18", "looked_at = [\"coda\"]\nblocks = 18")),
              HasSubstr("looked_at"));
  EXPECT_THAT(refused_field(with("3.1", "8.1")), HasSubstr("mean_error.value"));
  EXPECT_THAT(refused_field(with("7.5, unit = \"%\"", "7.5, unit = \"x\"")),
              HasSubstr("worst_error.unit"));
  EXPECT_THAT(refused_field(with("2026-11-22", "today")), HasSubstr("date"));
  EXPECT_THAT(refused_field(with("source = \"compare\"\n", "")), HasSubstr("source"));
  EXPECT_THAT(refused_field(with("source", "sauce")), HasSubstr("sauce"));
}

// Errors of the blocks of the check's policies, in all phases, by the predictor `hierarchy`.
std::vector<double> errors(const Gpu& gpu, const GpuCheck& check) {
  const Measurements all =
      load_measurements((data_dir() / "measurements" / check.measurements).string());
  EXPECT_EQ(load_gpu(all.meta.gpu).name, gpu.name);
  const std::vector<Predictor> predictors = standard_predictors(gpu, all);
  std::vector<double> out;
  for (const Scope scope : {Scope::inference, Scope::training}) {
    const ErrorTable table = validate(all, {&predictors.at(1), 1}, scope);
    for (const JudgedCase& c : table.cases) {
      const bool of_check =
          std::count(check.policies.begin(), check.policies.end(), c.block.execution) > 0;
      if (c.quantity == Quantity::block_time && of_check) out.push_back(std::abs(*c.error(0)));
    }
  }
  return out;
}

// What the files record is what comes out today, within half a percentage point.
TEST(SlowChecks, OfTheShippedGpusAreWhatTheirMeasurementsSay) {
  std::size_t checked = 0;
  for (const std::string& name : gpu_names()) {
    const Gpu gpu = load_gpu(name);
    for (const GpuCheck& check : gpu.checks) {
      SCOPED_TRACE(name + " " + describe(check));
      ++checked;
      const std::vector<double> found = errors(gpu, check);
      ASSERT_EQ(static_cast<std::int64_t>(found.size()), check.blocks);
      double sum = 0, worst = 0;
      for (const double e : found) {
        sum += e;
        worst = std::max(worst, e);
      }
      EXPECT_NEAR(sum / static_cast<double>(found.size()), check.mean_error, 0.005);
      EXPECT_NEAR(worst, check.worst_error, 0.005);
    }
  }
  EXPECT_GE(checked, 1U);
}

// No block of a checked GPU's folder is left out in silence: it is in one check, or the check says
// that its policy's blocks were looked at.
TEST(Checks, OfTheH100CoverEveryMeasuredBlock) {
  const Gpu gpu = load_gpu("h100");
  ASSERT_EQ(gpu.checks.size(), 1U);
  const GpuCheck& check = gpu.checks.front();
  const auto has = [](const std::vector<std::string>& policies, const std::string& policy) {
    return std::count(policies.begin(), policies.end(), policy) > 0;
  };
  std::int64_t of_check = 0;
  for (const MeasuredBlock& measured :
       load_measurements((data_dir() / "measurements" / check.measurements).string()).blocks) {
    EXPECT_NE(has(check.policies, measured.block.execution),
              has(check.looked_at, measured.block.execution))
        << measured.block.execution;
    of_check += has(check.policies, measured.block.execution) ? 1 : 0;
  }
  EXPECT_EQ(of_check, check.blocks);
}

}  // namespace
}  // namespace fuseline
