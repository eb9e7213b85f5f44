// What lab 2 says of how much longer measured blocks take than their roofline, from the shipped
// measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "model/config/model_files.h"
#include "model/policy.h"
#include "sim/measured/measurement.h"
#include "sim/report/prediction.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;

TEST(Labs, TheReadingOfLab2SaysWhatWasMeasured) {
  const Measurements all = load_measurements((data_dir() / "measurements/h200-pytorch").string());
  const Gpu gpu = load_gpu("h200");
  const std::vector<PolicyInfo> known = policies();
  std::vector<double> times_longer;
  for (const MeasuredBlock& measured : all.blocks) {
    // Runs that no policy imitates have no prediction.
    if (std::ranges::find(known, measured.block.execution, &PolicyInfo::name) == known.end())
      continue;
    const ModelConfig model = load_model(measured.block.model);
    const PredictionCase c{.model = model,
                           .gpu = gpu,
                           .workload = measured.block.workload,
                           .fidelity = Fidelity::roofline};
    const Plan plan = make_plan(measured.block.execution, model, measured.block.workload);
    times_longer.push_back(measured.time.median / simulate_replay(plan, c).time);
  }
  ASSERT_GT(times_longer.size(), 50U);
  std::ranges::sort(times_longer);
  const std::string range = fmt::format(
      "The {} measured blocks of PyTorch on an H200 (lab 8) take {:.2f} to {:.2f} times "
      "their roofline, half of them more than {:.2f} times",
      times_longer.size(), times_longer.front(), times_longer.back(),
      times_longer[times_longer.size() / 2]);
  const std::string reading =
      test::one_line(test::read_file(test::source_dir() / "docs/labs/02-rooflines/README.md"));
  EXPECT_THAT(reading, HasSubstr(range));
}

}  // namespace
}  // namespace fuseline::lab
