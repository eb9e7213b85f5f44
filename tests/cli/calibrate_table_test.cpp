// fuseline calibrate --gemm-table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

std::string small_table() {
  const std::string path = testing::TempDir() + "/fuseline-calibrate-table-test.csv";
  std::ofstream file(path);
  file << "m,n,k,us_median\n";
  for (int i = 1; i <= 30; ++i) file << 8 * i << ",1024,512," << 6 + 0.1 * i << "\n";
  return path;
}

TEST(CalibrateTable, SaysWhatWasFittedAndHowTheHeldRowsArePredicted) {
  const CliRun run =
      cli({"calibrate", "--gemm-table", small_table(), "--gpu", "l40s", "--iterations", "1"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("[calibration]\n"));
  EXPECT_THAT(run.out, HasSubstr("gemm.start_us = { value = "));
  EXPECT_THAT(run.out, HasSubstr("two of every three rows"));
  EXPECT_THAT(run.err, HasSubstr("20 fitted rows"));
  EXPECT_THAT(run.err, HasSubstr("10 held rows"));
}

TEST(CalibrateTable, StandsAloneAndNeedsAGpu) {
  const std::string table = small_table();
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"--gpu", "l40s", "--here"},
                                             {"--gpu", "l40s", "--bands"},
                                             {"--gpu", "l40s", "--without", "gpt2-xl"},
                                             {"--gpu", "l40s", "--minutes", "2"},
                                             {"--gpu", "l41s"}}) {
    std::vector<std::string> args = {"calibrate", "--gemm-table", table};
    args.insert(args.end(), more.begin(), more.end());
    EXPECT_EQ(cli(args).status, 2) << args.back();
  }
  EXPECT_EQ(cli({"calibrate", "--gemm-table", table + ".none", "--gpu", "l40s"}).status, 2);
}

}  // namespace
}  // namespace fuseline
