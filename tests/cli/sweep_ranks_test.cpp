// A sweep on several ranks of MPI, with one of them killed, other builds beside each other, and a
// disk that is full. Each as real processes.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sqlite_file.h"
#include "tests/cli/cli_run.h"
#include "tests/cli/rank_shell.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using test::Shell;
using test::shell;
using testing::HasSubstr;

constexpr const char* kGrid =
    " sweep --model tinyllama --gpu h200 --policy per-operator,coda --seq 16:960:+16";
constexpr std::size_t kCells = 60;

class SweepOnRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const Shell tried = shell(folder_, "mpirun -n 2 '" FUSELINE_BINARY
                                       "' sweep --model tinyllama "
                                       "--gpu h200 --policy coda --seq 8");
    if (tried.status == 127 || tried.said.find("without MPI") != std::string::npos)
      GTEST_SKIP() << "no MPI here: " << tried.said;
    ASSERT_EQ(tried.status, 0) << tried.said;
    EXPECT_EQ(lines_of(tried.said).size(), 2U) << tried.said;  // one rank speaks
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return read_text(folder_ / name);
  }
  [[nodiscard]] std::size_t journal_lines() const {
    return test::lines_in(folder_ / "out.csv.journal");
  }
  // By one process, and without a file.
  void expect_as_by_one() {
    const Shell one = shell(folder_, "'" FUSELINE_BINARY "'" + std::string(kGrid) + " > one.csv");
    ASSERT_EQ(one.status, 0) << one.said;
    EXPECT_EQ(file("out.csv"), file("one.csv"));
    EXPECT_EQ(lines_of(file("one.csv")).size(), 1 + 2 * kCells);
    EXPECT_FALSE(fs::exists(folder_ / "out.csv.journal"));
  }

  fs::path folder_;
};

TEST_F(SweepOnRanks, GoesOnAfterARankWasKilled) {
  const std::string command = "'" FUSELINE_BINARY "'" + std::string(kGrid) + " --output out.csv";
  const Shell killed = test::shell_with_a_killed_rank(folder_, command, "out.csv.journal", 10);
  ASSERT_NE(killed.status, 0) << killed.said;
  EXPECT_FALSE(fs::exists(folder_ / "out.csv"));
  const std::size_t finished = journal_lines() - 1;
  EXPECT_GE(finished, 9U);
  EXPECT_LT(finished, kCells);
  // Nothing begins anew by mistake.
  const Shell again = shell(folder_, command);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.said, HasSubstr("--resume"));
  const Shell resumed = shell(folder_, "mpirun -n 2 " + command + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.said;
  expect_as_by_one();
}

// The file of one process and of several is the same to the byte, also where it went on.
TEST_F(SweepOnRanks, WritesTheSameTableOfSqlite) {
  const std::string command = "'" FUSELINE_BINARY "'" + std::string(kGrid) + " --output ";
  const Shell one = shell(folder_, command + "one.sqlite");
  ASSERT_EQ(one.status, 0) << one.said;
  const Shell three = shell(folder_, "mpirun -n 3 " + command + "three.sqlite");
  ASSERT_EQ(three.status, 0) << three.said;
  EXPECT_EQ(file("three.sqlite"), file("one.sqlite"));
  const SqliteFile table((folder_ / "one.sqlite").string());
  std::size_t rows = 0;
  table.each("predictions", {"model", "policy", "seq"}, [&](const SqliteRow& row) {
    EXPECT_EQ(row.text_or_empty(0), "tinyllama");
    EXPECT_EQ(row.whole(2), 16 * static_cast<std::int64_t>(1 + rows / 2));
    ++rows;
  });
  EXPECT_EQ(rows, 2 * kCells);
}

TEST_F(SweepOnRanks, RefusesAnotherBuildBesideOurs) {
  const fs::path other = folder_ / "fuseline-other";
  fs::copy_file(FUSELINE_BINARY, other);
  std::ofstream(other, std::ios::app) << "x";  // it still runs
  const Shell mixed =
      shell(folder_, "mpirun -n 1 '" FUSELINE_BINARY "'" + std::string(kGrid) +
                         " --output out.csv : -n 1 ./fuseline-other" + kGrid + " --output out.csv");
  EXPECT_EQ(mixed.status, 2) << mixed.said;
  EXPECT_THAT(mixed.said, HasSubstr("the same build of fuseline"));
  EXPECT_FALSE(fs::exists(folder_ / "out.csv"));
  EXPECT_FALSE(fs::exists(folder_ / "out.csv.journal"));
}

TEST_F(SweepOnRanks, SpeaksOnceAboutAMistake) {
  const Shell wrong = shell(folder_, "mpirun -n 2 '" FUSELINE_BINARY "' sweep --gpu h2000");
  EXPECT_EQ(wrong.status, 2) << wrong.said;
  const std::size_t first = wrong.said.find("fuseline: error");
  EXPECT_NE(first, std::string::npos) << wrong.said;
  EXPECT_EQ(wrong.said.find("fuseline: error", first + 1), std::string::npos) << wrong.said;
  const Shell as_json = shell(folder_, "mpirun -n 2 '" FUSELINE_BINARY "' sweep --format json");
  EXPECT_EQ(as_json.status, 2) << as_json.said;
  EXPECT_THAT(as_json.said, HasSubstr("is not made by several ranks"));
}

// A limit on the size of files stands for a full disk: both make a write fail.
TEST(SweepOnOneProcess, GoesOnAfterTheDiskWasFull) {
  const fs::path folder = fs::path(testing::TempDir()) / "full";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string command = "'" FUSELINE_BINARY "'" + std::string(kGrid) + " --output out.csv";
  const Shell full = shell(folder, "(trap '' XFSZ; ulimit -f 12; exec " + command + ")");
  EXPECT_EQ(full.status, 2) << full.said;
  EXPECT_THAT(full.said, HasSubstr("out.csv.journal"));
  EXPECT_THAT(full.said, HasSubstr("--resume"));
  EXPECT_FALSE(fs::exists(folder / "out.csv"));
  EXPECT_GT(fs::file_size(folder / "out.csv.journal"), 1000U);
  const Shell resumed = shell(folder, command + " --resume");
  ASSERT_EQ(resumed.status, 0) << resumed.said;
  const Shell one = shell(folder, "'" FUSELINE_BINARY "'" + std::string(kGrid) + " > one.csv");
  ASSERT_EQ(one.status, 0) << one.said;
  EXPECT_EQ(read_text(folder / "out.csv"), read_text(folder / "one.csv"));
}

}  // namespace
}  // namespace fuseline
