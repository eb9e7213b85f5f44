#include "tests/cuda/emit/kernel_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace fuseline::test {
namespace {

const std::string kListed = "00112233445566778899aabbccddeeff00112233";
const std::string kOther = "00112233445566708899aabbccddeeff00112233";

TEST(KernelLedger, ListsTheKernelsOfItsLinesAlone) {
  const std::filesystem::path file = testing::TempDir() + "ledger.txt";
  std::ofstream(file) << "# a comment\n\n" << KernelLedger::line_of(kListed) << "\n";
  const KernelLedger ledger(file);
  EXPECT_TRUE(ledger.lists(kListed));
  EXPECT_FALSE(ledger.lists(kOther));
  EXPECT_FALSE(ledger.lists("# a comment"));
}

TEST(KernelLedger, ListsNothingWhereThereIsNone) {
  EXPECT_FALSE(KernelLedger("no/such/ledger.txt").lists(kListed));
}

TEST(KernelLedger, EveryKernelHasOneDayOf32) {
  for (int i = 0; i < 200; ++i) {
    const std::string digest = fmt::format("{:08x}{}", i * 7919, kListed);
    int days = 0;
    for (unsigned long long day = 20'000; day < 20'032; ++day)
      days += static_cast<int>(is_of_day(digest, day));
    EXPECT_EQ(days, 1) << digest;
  }
}

// Anything else would list nothing, and every kernel would be compiled every time.
TEST(KernelLedger, TheShippedOneIsSortedDigests) {
  std::ifstream in(FUSELINE_SOURCE_DIR "/tests/cuda/emit/passed_kernels.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.starts_with('#')) lines.push_back(line);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_EQ(std::adjacent_find(lines.begin(), lines.end()), lines.end());
  for (const std::string& line : lines) {
    EXPECT_EQ(line.size(), 16U) << line;
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](unsigned char c) {
      return std::isxdigit(c) != 0;
    })) << line;
  }
}

}  // namespace
}  // namespace fuseline::test
