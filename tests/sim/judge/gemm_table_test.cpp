#include "sim/judge/gemm_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "sim/block/single_gemm.h"

namespace fuseline {
namespace {

class GemmTableTest : public testing::Test {
 protected:
  ~GemmTableTest() override { std::filesystem::remove(path_); }

  std::string table(const std::string& rows, const char* header = "m,n,k,us_median,us_min") {
    std::ofstream(path_) << header << "\n" << rows;
    return path_;
  }
  // What the simulator says of these constants, as if somebody had measured it.
  std::string table_of(const Gpu& gpu) {
    std::string rows;
    for (const std::int64_t m : {1, 16, 128, 512, 1024, 4096})
      for (const std::int64_t n : {512, 2048, 6144})
        for (const std::int64_t k : {1024, 4096}) {
          const KernelEstimate e =
              estimate_library_gemm({.m = m, .n = n, .k = k, .operands = Operands::rotating}, gpu);
          rows += std::to_string(m) + "," + std::to_string(n) + "," + std::to_string(k) + "," +
                  std::to_string(to_us(e.time)) + ",1\n";
        }
    return table(rows);
  }

 private:
  const std::string path_ = (std::filesystem::path(testing::TempDir()) /
                             ("fuseline-gemm-table-test-" + std::to_string(getpid()) + ".csv"))
                                .string();
};

TEST_F(GemmTableTest, EveryThirdRowIsHeld) {
  std::string rows;
  for (int i = 1; i <= 31; ++i) rows += std::to_string(i) + ",64,32,5.5,5\n";
  const GemmTable read = load_gemm_table(table(rows));
  ASSERT_EQ(read.fitted.size(), 21U);
  ASSERT_EQ(read.held.size(), 10U);
  EXPECT_EQ(read.fitted[2].m, 4);
  for (std::size_t i = 0; i < read.held.size(); ++i)
    EXPECT_EQ(read.held[i].m, 3 * static_cast<std::int64_t>(i + 1));
  EXPECT_DOUBLE_EQ(to_us(read.held.front().time), 5.5);
}

TEST_F(GemmTableTest, ATableThatIsNoneIsRefused) {
  std::string rows;
  for (int i = 1; i <= 29; ++i) rows += "8,64,32,5.5,5\n";
  EXPECT_THROW(load_gemm_table(table(rows)), InputError) << "29 rows";
  rows += "8,64,32,5.5,5\n";
  EXPECT_EQ(load_gemm_table(table(rows)).held.size(), 10U);
  EXPECT_THROW(load_gemm_table(table(rows, "m,n,k,us,us_min")), InputError);
  EXPECT_THROW(load_gemm_table(table(rows + "0,64,32,5.5,5\n")), InputError);
  EXPECT_THROW(load_gemm_table(table(rows + "8,64,32,-5.5,5\n")), InputError);
}

TEST_F(GemmTableTest, ErrorsAreOfTheTime) {
  const Gpu gpu = load_gpu("h200");
  GemmTable read = load_gemm_table(table_of(gpu));
  EXPECT_LT(error_of(read.held, gpu).mean, 1e-4);  // of rounding to nanoseconds
  for (std::size_t i = 0; i < read.held.size(); ++i)
    read.held[i].time = read.held[i].time * (i % 2 == 0 ? 0.5 : 2.0);
  const TableError e = error_of(read.held, gpu);
  EXPECT_NEAR(e.mean, 0.75, 1e-4);  // +100 and -50 %
  EXPECT_NEAR(e.bias, 0.25, 1e-4);
}

// Given times that other constants made, the fit finds them and predicts rows that it did not see.
TEST_F(GemmTableTest, TheConstantsThatMadeATableAreFound) {
  Gpu gpu = load_gpu("a100-sxm-80gb");
  Gpu other = gpu;
  set_constant(other, "gemm.start_us", 1.5 * constant_of(gpu, "gemm.start_us"));
  set_constant(other, "gemm.hbm_fraction", 0.8 * constant_of(gpu, "gemm.hbm_fraction"));
  const GemmTable read = load_gemm_table(table_of(other));
  const TableFit fit = fit_gemm_table(read, gpu, 6);
  EXPECT_GT(fit.held_before.mean, 0.05);
  EXPECT_LT(fit.fitted_after.mean, 0.02);
  EXPECT_LT(fit.held_after.mean, 0.02);
  ASSERT_TRUE(fit.fit.constants.contains("gemm.start_us"));
  EXPECT_NEAR(fit.fit.constants.at("gemm.start_us") / constant_of(other, "gemm.start_us"), 1, 0.05);
}

}  // namespace
}  // namespace fuseline
