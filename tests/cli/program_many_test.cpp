// program with several files and with folders.
#include "cli/program_many.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kShippedPrograms = FUSELINE_SOURCE_DIR "/scenarios/programs";
const std::string kHandbook = FUSELINE_SOURCE_DIR "/docs/handbook";

TEST(ProgramMany, AnswersInALineForEachFileOfAFolder) {
  const CliRun run = cli({"program", "check", kShippedPrograms, kHandbook + "/swish.fuse"});
  EXPECT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], kShippedPrograms + "/geglu-fp8.fuse: legal");
  EXPECT_EQ(lines[1], kShippedPrograms + "/norm-router.fuse: legal");
  EXPECT_EQ(lines[2], kHandbook + "/swish.fuse: legal");
  EXPECT_THAT(run.err, StartsWith("fuseline: 3 files, 3 without mistakes"));
}

// Each line is what the file alone would get, whatever the number of threads.
TEST(ProgramMany, AnswersInObjectsThatOneFileWouldGet) {
  const CliRun run = cli({"program", "predict", kShippedPrograms, "--gpu", "h200", "--format",
                          "json", "--threads", "2"});
  EXPECT_EQ(run.status, 0) << run.err;
  const std::vector<std::string> lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 2U);
  const CliRun alone = cli({"program", "predict", kShippedPrograms + "/norm-router.fuse", "--gpu",
                            "h200", "--format", "json"});
  EXPECT_EQ(nlohmann::json::parse(lines[1]), nlohmann::json::parse(alone.out));
  EXPECT_EQ(run.out, cli({"program", "predict", kShippedPrograms, "--gpu", "h200", "--format",
                          "json", "--threads", "1"})
                         .out);
}

TEST(ProgramMany, GoesOnBehindAFileWithMistakes) {
  const CliRun run =
      cli({"program", "check", kHandbook + "/largest.fuse", kHandbook + "/swish.fuse"});
  EXPECT_EQ(run.status, 2);
  const std::vector<std::string> lines = lines_of(run.out);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("1 mistake, the first [no-finisher] in line 15"));
  EXPECT_THAT(lines[1], HasSubstr("legal"));
  EXPECT_THAT(run.err, HasSubstr("2 files, 1 without mistakes"));
}

// A letter that only one of the files has is wrong for the other, on the command line.
TEST(ProgramMany, RefuseWhatNoFileCanHave) {
  const auto refused = [](const std::vector<std::string>& args) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.status, 2) << run.err;
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_THAT(refused({"program", "check", kShippedPrograms, "no-such.fuse"}),
              HasSubstr("no-such.fuse: there is no such file"));
  EXPECT_THAT(refused({"program", "check", FUSELINE_SOURCE_DIR "/scenarios/gpus"}),
              HasSubstr("the folder holds no text of programs"));
  EXPECT_THAT(refused({"program", "explain", kShippedPrograms}), HasSubstr("takes one file"));
  EXPECT_THAT(refused({"program", "check", kShippedPrograms, "--watch"}),
              HasSubstr("takes one file"));
  EXPECT_THAT(refused({"program", "check", kShippedPrograms, "--gpu", "h201"}), HasSubstr("h200"));
  EXPECT_THAT(refused({"program", "verify", kShippedPrograms, "--threads", "0"}),
              HasSubstr("--threads"));
}

// Files are worked on in the order of their sizes, and answered in that of their names.
TEST(ProgramMany, AnswersInTheOrderOfTheFilesWhateverTheirSizes) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "order_of_many_programs";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const int rows[] = {512, 256, 768, 256};
  for (int i = 0; i < 4; ++i)
    std::ofstream(folder / fmt::format("p{}.fuse", i))
        << "fuse 1\nsize M = " << rows[i] << ", N = 128\ninput x[M,N]\noutput y[M,N]\n"
        << "program p\n  for each tile of [M, N]\n  x = load x[M,N]\n  z = tanh(x)\n"
        << "  store y[M,N] = z\n";
  const CliRun many = cli({"program", "predict", folder.string(), "--gpu", "h200"});
  EXPECT_EQ(many.status, 0) << many.err;
  std::istringstream lines(many.out);
  std::string line;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_TRUE(line.starts_with((folder / fmt::format("p{}.fuse: on ", i)).string())) << line;
    // The same as the first line of the file's own prediction.
    const CliRun one = cli(
        {"program", "predict", (folder / fmt::format("p{}.fuse", i)).string(), "--gpu", "h200"});
    const std::string first = one.out.substr(0, one.out.find('\n'));
    EXPECT_NE(line.find(first), std::string::npos) << line << "\n" << first;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fuseline
