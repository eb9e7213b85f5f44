#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

TEST(App, WithoutArgumentsShowsHelpAndFails) {
  const CliRun run = cli({});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("usage: fuseline COMMAND"));
}

TEST(App, HelpAndVersionAreOutput) {
  for (const char* flag : {"--help", "-h", "help"}) {
    const CliRun run = cli({flag});
    EXPECT_EQ(run.status, 0);
    EXPECT_THAT(run.out, HasSubstr("fuseline compare"));
    expect_fits_100_columns(run.out);
  }
  EXPECT_THAT(cli({"--version"}).out, HasSubstr("fuseline 0."));
}

TEST(App, EveryCommandHasHelpWithExamples) {
  for (const char* command :
       {"predict", "gemm", "explain", "program", "compare", "report", "list"}) {
    const CliRun run = cli({command, "--help"});
    EXPECT_EQ(run.status, 0) << command;
    EXPECT_THAT(run.out, HasSubstr("Examples:")) << command;
    EXPECT_EQ(run.err, "") << command;
    for (const std::string& line : lines_of(run.out)) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(App, UnknownCommandSuggestsTheNearest) {
  const CliRun run = cli({"predcit"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("did you mean 'predict'?"));
}

TEST(App, UnknownOptionSuggestsTheNearest) {
  const CliRun run = cli({"predict", "--modle", "llama2-7b"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("'--modle'"));
  EXPECT_THAT(run.err, HasSubstr("did you mean '--model'?"));
}

TEST(App, AnOptionWithoutItsValueIsWrong) {
  EXPECT_EQ(cli({"predict", "--model"}).status, 2);
  EXPECT_EQ(cli({"list", "gpus", "models"}).status, 2);
}

TEST(App, OutputThatCannotBeWrittenIsNoSuccess) {
  std::ostringstream err;
  std::ostream broken(nullptr);
  EXPECT_EQ(run_cli({"--version"}, broken, err), 3);
}

}  // namespace
}  // namespace fuseline
