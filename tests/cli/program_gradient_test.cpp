// program gradient as a command.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "tests/cli/cli_run.h"

namespace fuseline {
namespace {

// The gradient loads what the forward programs keep, and those are written beside it.
TEST(ProgramGradientCommand, WritesTheProgramsThatKeepATile) {
  const std::string kept = testing::TempDir() + "/kept.fuse";
  const CliRun run =
      cli({"program", "gradient", FUSELINE_SOURCE_DIR "/docs/handbook/swish.fuse", "--kept", kept});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("z = load up_z["), std::string::npos) << run.out;
  const CliRun forward = cli({"program", "check", kept});
  EXPECT_EQ(forward.status, 0) << forward.err;
  std::ifstream file(kept);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("store up_z["), std::string::npos) << text;
}

}  // namespace
}  // namespace fuseline
