#include "lab/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;

SandboxResult shell(const std::string& script, const SandboxLimits& limits) {
  return run_sandboxed({"sh", "-c", script}, test::new_folder(), limits);
}

SandboxLimits tight() {
  SandboxLimits limits;
  limits.cpu_seconds = 1;
  limits.wall_seconds = 20;
  limits.may_start_processes = true;
  return limits;
}

TEST(Sandbox, GivesOutputAndExitStatus) {
  const SandboxResult r = shell("echo out; echo err >&2; exit 3", tight());
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_EQ(r.exit_status, 3);
  EXPECT_THAT(r.output, HasSubstr("out\n"));
  EXPECT_THAT(r.output, HasSubstr("err\n"));
  EXPECT_EQ(describe(r, tight()), "");
}

TEST(Sandbox, RunsInTheFolderWithoutInput) {
  const auto folder = test::new_folder();
  const SandboxResult r = run_sandboxed({"sh", "-c", "pwd; cat; echo end"}, folder, tight());
  EXPECT_EQ(r.output, std::filesystem::canonical(folder).string() + "\nend\n");
}

TEST(Sandbox, StopsAnEndlessLoopAndSaysSo) {
  const SandboxResult r = shell("while :; do :; done", tight());
  EXPECT_EQ(r.ending, Ending::timeout);
  EXPECT_THAT(describe(r, tight()), HasSubstr("longer than 1 s"));
  EXPECT_THAT(describe(r, tight()), HasSubstr("loop"));
}

TEST(Sandbox, StopsALoopThatIgnoresTheWarning) {
  EXPECT_EQ(shell("trap '' XCPU; while :; do :; done", tight()).ending, Ending::timeout);
}

TEST(Sandbox, StopsWhatSleeps) {
  SandboxLimits limits = tight();
  limits.wall_seconds = 1;
  EXPECT_EQ(shell("sleep 60", limits).ending, Ending::timeout);
}

TEST(Sandbox, StopsWhatClosesItsOutputAndSleeps) {
  SandboxLimits limits = tight();
  limits.wall_seconds = 1;
  EXPECT_EQ(shell("exec >&- 2>&-; sleep 60", limits).ending, Ending::timeout);
}

TEST(Sandbox, DoesNotWaitForProcessesLeftBehind) {
  const SandboxResult r = shell("sleep 60 & echo started", tight());
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_EQ(r.output, "started\n");
}

TEST(Sandbox, StopsAFloodOfOutput) {
  SandboxLimits limits = tight();
  limits.output = Bytes(1000);
  const SandboxResult r = shell("while :; do echo 0123456789; done", limits);
  EXPECT_EQ(r.ending, Ending::output_flood);
  EXPECT_EQ(r.output.size(), 1000U);
}

TEST(Sandbox, NamesTheSignalOfACrash) {
  const SandboxResult r = shell("kill -SEGV $$", tight());
  EXPECT_EQ(r.ending, Ending::crashed);
  EXPECT_EQ(r.signal, "SIGSEGV");
  EXPECT_THAT(describe(r, tight()), HasSubstr("SIGSEGV"));
}

TEST(Sandbox, SaysThatMemoryRanOut) {
  const SandboxResult r = shell("exit 86", tight());
  EXPECT_EQ(r.ending, Ending::memory);
  EXPECT_THAT(describe(r, tight()), HasSubstr("memory"));
}

TEST(Sandbox, LimitsTheSizeOfFiles) {
  SandboxLimits limits = tight();
  limits.file_size = Bytes(4096);
  const SandboxResult r = shell("trap '' XFSZ; head -c 100000 /dev/zero > f; wc -c < f", limits);
  EXPECT_THAT(r.output, HasSubstr("4096"));
}

TEST(Sandbox, SaysThatAProgramIsNotThere) {
  const SandboxResult r = run_sandboxed({"no-such-program-7"}, test::new_folder(), tight());
  EXPECT_EQ(r.ending, Ending::not_started);
}

}  // namespace
}  // namespace fuseline::lab
