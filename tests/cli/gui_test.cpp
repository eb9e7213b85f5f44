#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

using ::testing::HasSubstr;

TEST(GuiCommand, WithoutTheWindowSaysWhatToInstall) {
  const CliRun run = cli({"gui"});  // nothing lies beside the program of the tests
  EXPECT_EQ(run.status, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("qtbase5-dev"));
  EXPECT_THAT(run.err, HasSubstr("libqcustomplot-dev"));
}

}  // namespace
}  // namespace fuseline
