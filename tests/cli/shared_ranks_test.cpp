// search, audit and calibrate on several ranks of MPI: the same bytes for any number of them, also
// where one was killed, and refusals of other builds. Each as real processes.
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_run.h"
#include "tests/cli/rank_shell.h"

namespace fuseline {
namespace {

namespace fs = std::filesystem;
using test::Shell;
using test::shell;
using testing::HasSubstr;

const std::string kProgram = "'" FUSELINE_BINARY "'";
// Hundreds of plans are simulated, so that a rank can be killed between them.
const std::string kSearch =
    " search --model mixtral-8x7b --gpu h200 --seq 256 --policy coda --budget 500";

class WorkOnRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    const Shell tried = shell(folder_, "mpirun -n 2 " + kProgram +
                                           " sweep --model tinyllama --gpu h200 --policy coda "
                                           "--seq 8");
    if (tried.status == 127 || tried.said.find("without MPI") != std::string::npos)
      GTEST_SKIP() << "no MPI here: " << tried.said;
    ASSERT_EQ(tried.status, 0) << tried.said;
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return read_text(folder_ / name);
  }
  [[nodiscard]] std::size_t journal_lines() const {
    return test::lines_in(folder_ / "found.fuse.journal");
  }
  void expect_same_on_ranks(const std::string& command) {
    const Shell one = shell(folder_, kProgram + command + " > one");
    ASSERT_EQ(one.status, 0) << one.said;
    ASSERT_FALSE(file("one").empty());
    for (const int ranks : {2, 3}) {
      const Shell many = shell(
          folder_, fmt::format("mpirun -n {} {}{} > many 2> error", ranks, kProgram, command));
      ASSERT_EQ(many.status, 0) << file("error");
      EXPECT_EQ(file("many"), file("one")) << ranks << " ranks: " << command;
    }
  }

  fs::path folder_;
};

TEST_F(WorkOnRanks, SearchFindsTheSame) {
  expect_same_on_ranks(
      " search --model tinyllama --gpu h200 --phase decode --batch 4 --context 512 --policy coda");
  expect_same_on_ranks(
      " search --model tinyllama --gpu h200 --phase decode --batch 4 --context 512 "
      "--objective launches --pareto time --policy coda --budget 500");
}

TEST_F(WorkOnRanks, DistributionsAreTheSame) {
  std::ofstream(folder_ / "shapes.csv") << "batch,tokens,context,weight\n1,64,0,3\n1,200,0,2\n"
                                           "1,700,0,1\n";
  expect_same_on_ranks(
      " search --model tinyllama --gpu h200 --policy coda --distribution shapes.csv --buckets 2 "
      "--budget 500");
}

TEST_F(WorkOnRanks, AuditsAreTheSame) { expect_same_on_ranks(" audit 70b-cost-h100"); }

TEST_F(WorkOnRanks, FitsAreTheSame) {
  std::ofstream table(folder_ / "gemm.csv");
  table << "m,n,k,us_median\n";
  for (int i = 1; i <= 36; ++i)
    table << 128 * i << "," << 1024 + 64 * i << ",2048," << 10 + 3.5 * i << "\n";
  table.close();
  expect_same_on_ranks(" calibrate --gemm-table gemm.csv --gpu h200 --iterations 1");
}

TEST_F(WorkOnRanks, SearchGoesOnAfterARankWasKilled) {
  const std::string command = kProgram + kSearch + " --output found.fuse";
  const Shell one = shell(folder_, kProgram + kSearch + " --output one.fuse > one");
  ASSERT_EQ(one.status, 0) << one.said;
  const Shell killed = test::shell_with_a_killed_rank(folder_, command, "found.fuse.journal", 30);
  ASSERT_NE(killed.status, 0) << killed.said;
  EXPECT_FALSE(fs::exists(folder_ / "found.fuse"));
  const std::size_t kept = journal_lines();
  EXPECT_GE(kept, 30U);
  // Work that several ranks began is not begun anew by mistake.
  const Shell anew = shell(folder_, "mpirun -n 2 " + command);
  EXPECT_EQ(anew.status, 2) << anew.said;
  EXPECT_THAT(anew.said, HasSubstr("--resume"));
  const Shell resumed = shell(folder_, "mpirun -n 2 " + command + " --resume > many");
  ASSERT_EQ(resumed.status, 0) << resumed.said;
  EXPECT_EQ(file("found.fuse"), file("one.fuse"));
  EXPECT_EQ(file("many"), file("one"));
  EXPECT_FALSE(fs::exists(folder_ / "found.fuse.journal"));
}

TEST_F(WorkOnRanks, RefusesAnotherBuildBesideOurs) {
  const fs::path other = folder_ / "fuseline-other";
  fs::copy_file(FUSELINE_BINARY, other);
  std::ofstream(other, std::ios::app) << "x";  // it still runs
  for (const std::string& command : {std::string(" audit 70b-cost-h100"), kSearch}) {
    const Shell mixed = shell(folder_, fmt::format("mpirun -n 1 {}{} : -n 1 ./fuseline-other{}",
                                                   kProgram, command, command));
    EXPECT_EQ(mixed.status, 2) << mixed.said;
    EXPECT_THAT(mixed.said, HasSubstr("the same build of fuseline"));
  }
}

TEST_F(WorkOnRanks, SpeakOnceAboutAMistake) {
  const Shell wrong = shell(folder_, "mpirun -n 2 " + kProgram + " search --gpu h2000");
  EXPECT_EQ(wrong.status, 2) << wrong.said;
  const std::size_t first = wrong.said.find("fuseline: error");
  EXPECT_NE(first, std::string::npos) << wrong.said;
  EXPECT_EQ(wrong.said.find("fuseline: error", first + 1), std::string::npos) << wrong.said;
  const Shell here = shell(folder_, "mpirun -n 2 " + kProgram + " calibrate --here");
  EXPECT_EQ(here.status, 2) << here.said;
  EXPECT_THAT(here.said, HasSubstr("the GPU of one process"));
}

// The first rank has nothing to say of it, and waits for the other.
TEST_F(WorkOnRanks, AMistakeOfAnotherRankAloneIsSpokenOf) {
  const Shell wrong =
      shell(folder_, fmt::format("mpirun -n 1 {}{} : -n 1 {} search --no-such-option", kProgram,
                                 kSearch, kProgram));
  EXPECT_EQ(wrong.status, 2) << wrong.said;
  EXPECT_THAT(wrong.said, HasSubstr("no-such-option"));
}

// A limit on the size of files stands for a full disk.
TEST(WorkOnOneProcess, GoesOnAfterTheDiskWasFull) {
  const fs::path folder = fs::path(testing::TempDir()) / "full-audit";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string command = kProgram + " audit 70b-cost-h100 --output out.txt --resume";
  const Shell full = shell(folder, "(trap '' XFSZ; ulimit -f 4; exec " + command + ")");
  EXPECT_EQ(full.status, 2) << full.said;
  EXPECT_THAT(full.said, HasSubstr("out.txt.journal"));
  EXPECT_FALSE(fs::exists(folder / "out.txt"));
  const Shell resumed = shell(folder, command);
  ASSERT_EQ(resumed.status, 0) << resumed.said;
  EXPECT_FALSE(fs::exists(folder / "out.txt.journal"));
  const Shell one = shell(folder, kProgram + " audit 70b-cost-h100 > one.txt");
  ASSERT_EQ(one.status, 0) << one.said;
  EXPECT_EQ(read_text(folder / "out.txt"), read_text(folder / "one.txt"));
  const Shell alone = shell(folder, kProgram + " audit 70b-cost-h100 --resume");
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.said, HasSubstr("--output FILE"));
}

}  // namespace
}  // namespace fuseline
