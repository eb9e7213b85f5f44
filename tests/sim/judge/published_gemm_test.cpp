#include "sim/judge/published_gemm.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "base/data_dir.h"
#include "base/error.h"
#include "sim/gpu/gpu.h"

namespace fuseline {
namespace {

std::string write_table(const std::string& rows) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    ("fuseline-published-test-" + std::to_string(getpid()) + ".csv");
  std::ofstream(path) << "source,citation,gpu,m,n,k,tflop_per_s,caveat\n" << rows;
  return path.string();
}

// Prints the error of every row. A prediction may be far off here, for nothing was fitted; it may
// not be impossible.
TEST(PublishedGemm, EveryRowIsJudgedAndPrinted) {
  std::vector<JudgedGemm> judged;
  for (const PublishedGemm& gemm :
       load_published_gemms((data_dir() / "published" / "gemm.csv").string())) {
    const JudgedGemm j = judge(gemm);
    const Gpu gpu = load_gpu(gemm.gpu);
    const double boost = gpu.sm_clock / gpu.tensor_clock;
    EXPECT_GT(j.predicted.value(), 0) << gemm.gpu;
    EXPECT_LE(j.predicted.value(), gpu.tensor_bf16.value() * std::max(1.0, boost)) << gemm.gpu;
    judged.push_back(j);
  }
  ASSERT_FALSE(judged.empty());
  std::cout << published_table(judged);
}

TEST(PublishedGemm, TheErrorIsThatOfTheTime) {
  JudgedGemm slow{{.gpu = "h200", .rate = FlopsPerSecond(6e14)}, FlopsPerSecond(4e14)};
  EXPECT_NEAR(slow.error(), 0.5, 1e-12);
  const std::string table = published_table({slow, {slow.published, FlopsPerSecond(8e14)}});
  EXPECT_NE(table.find("+50.0 %"), std::string::npos) << table;
  EXPECT_NE(table.find("h200: mean error 37.5 % over 2 rows"), std::string::npos) << table;
}

TEST(PublishedGemm, RowsAreChecked) {
  EXPECT_EQ(load_published_gemms(write_table("s,c,h200,64,64,64,10,none\n")).front().m, 64);
  for (const char* row : {"s,c,h300,64,64,64,10,x\n", "s,c,h200,0,64,64,10,x\n",
                          "s,c,h200,64,64,64,-1,x\n", "s,c,h200,64,64,6.5,10,x\n"}) {
    EXPECT_THROW(load_published_gemms(write_table(row)), InputError) << row;
  }
}

}  // namespace
}  // namespace fuseline
