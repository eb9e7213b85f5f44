#include "lab/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lab/secret.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

using ::testing::HasSubstr;

SandboxResult shell(const std::string& script, const SandboxLimits& limits) {
  return run_sandboxed({"sh", "-c", script}, test::new_folder(), limits);
}

// With walls where they are to be had, and with the limits alone, which is all there is elsewhere.
class Sandbox : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && sandbox_walls().bubblewrap.empty()) GTEST_SKIP() << sandbox_walls().why_not;
  }
  static SandboxLimits tight() {
    SandboxLimits limits;
    limits.cpu_seconds = 1;
    limits.wall_seconds = 20;
    limits.may_start_processes = true;
    limits.within_walls = GetParam();
    return limits;
  }
};

std::string walls_name(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "WithinWalls" : "WithLimitsAlone";
}
INSTANTIATE_TEST_SUITE_P(Both, Sandbox, ::testing::Bool(), walls_name);

TEST_P(Sandbox, GivesOutputAndExitStatus) {
  const SandboxResult r = shell("echo out; echo err >&2; exit 3", tight());
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_EQ(r.exit_status, 3);
  EXPECT_THAT(r.output, HasSubstr("out\n"));
  EXPECT_THAT(r.output, HasSubstr("err\n"));
  EXPECT_EQ(describe(r, tight()), "");
}

TEST_P(Sandbox, RunsInTheFolderWithoutInput) {
  const auto folder = test::new_folder();
  const SandboxResult r = run_sandboxed({"sh", "-c", "pwd; cat; echo end"}, folder, tight());
  EXPECT_EQ(r.output, std::filesystem::canonical(folder).string() + "\nend\n");
}

TEST_P(Sandbox, StopsAnEndlessLoopAndSaysSo) {
  const SandboxResult r = shell("while :; do :; done", tight());
  EXPECT_EQ(r.ending, Ending::timeout);
  EXPECT_THAT(describe(r, tight()), HasSubstr("longer than 1 s"));
  EXPECT_THAT(describe(r, tight()), HasSubstr("loop"));
}

TEST_P(Sandbox, StopsALoopThatIgnoresTheWarning) {
  EXPECT_EQ(shell("trap '' XCPU; while :; do :; done", tight()).ending, Ending::timeout);
}

TEST_P(Sandbox, StopsWhatSleeps) {
  SandboxLimits limits = tight();
  limits.wall_seconds = 1;
  EXPECT_EQ(shell("sleep 60", limits).ending, Ending::timeout);
}

TEST_P(Sandbox, StopsWhatClosesItsOutputAndSleeps) {
  SandboxLimits limits = tight();
  limits.wall_seconds = 1;
  EXPECT_EQ(shell("exec >&- 2>&-; sleep 60", limits).ending, Ending::timeout);
}

TEST_P(Sandbox, DoesNotWaitForProcessesLeftBehind) {
  const SandboxResult r = shell("sleep 60 & echo started", tight());
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_EQ(r.output, "started\n");
}

TEST_P(Sandbox, StopsAFloodOfOutput) {
  SandboxLimits limits = tight();
  limits.output = Bytes(1000);
  const SandboxResult r = shell("while :; do echo 0123456789; done", limits);
  EXPECT_EQ(r.ending, Ending::output_flood);
  EXPECT_EQ(r.output.size(), 1000U);
}

TEST_P(Sandbox, NamesTheSignalOfACrash) {
  const SandboxResult r = shell("kill -SEGV $$", tight());
  EXPECT_EQ(r.ending, Ending::crashed);
  EXPECT_EQ(r.signal, "SIGSEGV");
  EXPECT_THAT(describe(r, tight()), HasSubstr("SIGSEGV"));
}

TEST_P(Sandbox, SaysThatMemoryRanOut) {
  const SandboxResult r = shell("exit 86", tight());
  EXPECT_EQ(r.ending, Ending::memory);
  EXPECT_THAT(describe(r, tight()), HasSubstr("memory"));
}

TEST_P(Sandbox, LimitsTheSizeOfFiles) {
  SandboxLimits limits = tight();
  limits.file_size = Bytes(4096);
  const SandboxResult r = shell("trap '' XFSZ; yes | head -c 100000 > f; wc -c < f", limits);
  EXPECT_THAT(r.output, HasSubstr("4096"));
}

// Whoever holds the writing end of a pipe keeps its reader waiting.
struct Witness {
  int ends[2] = {-1, -1};
  Witness() { EXPECT_EQ(pipe(ends), 0); }
  ~Witness() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  // Whether everybody but this process has let go of it, or does so within a minute.
  bool all_gone() {
    close(ends[1]);
    ends[1] = -1;
    pollfd wait{ends[0], POLLIN, 0};
    char byte = 0;
    while (poll(&wait, 1, 60000) > 0) {
      if (read(ends[0], &byte, 1) <= 0) return true;
    }
    return false;
  }
};

TEST_P(Sandbox, EndsWhatHasGoneIntoASessionOfItsOwn) {
  Witness witness;
  const SandboxResult r =
      shell("setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & echo on", tight());
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_TRUE(witness.all_gone());
}

// As Ctrl-C does, or worse.
TEST_P(Sandbox, EndsEverythingWhenTheCheckerDies) {
  for (const int signal : {SIGINT, SIGKILL}) {
    Witness witness, started;
    const pid_t checker = fork();
    if (checker == 0) {
      std::signal(SIGINT, SIG_DFL);
      const std::string tell = "echo >&" + std::to_string(started.ends[1]);
      SandboxLimits limits = tight();
      limits.wall_seconds = 600;
      shell("setsid sleep 600 & sleep 600 & " + tell + "; sleep 600", limits);
      _exit(0);
    }
    char byte = 0;
    EXPECT_EQ(read(started.ends[0], &byte, 1), 1);  // all of them run now
    kill(checker, signal);
    int status = 0;
    EXPECT_EQ(waitpid(checker, &status, 0), checker);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(witness.all_gone());
  }
}

TEST_P(Sandbox, DoesNotPassOnTheNameOfTheSecret) {
  setenv(kSecretVariable, "/some/secret/file", 1);
  const SandboxResult r = shell(std::string("echo \"<$") + kSecretVariable + ">\"", tight());
  unsetenv(kSecretVariable);
  EXPECT_EQ(r.output, "<>\n");
}

TEST_P(Sandbox, ConversesWithTheProgram) {
  std::string heard;
  const SandboxChannel channel{"hello\n", [&](std::string_view text, std::string& reply) {
                                 heard += text;
                                 reply += "you said so\n";
                                 return true;
                               }};
  const SandboxResult r =
      run_sandboxed({"sh", "-c", "read a <&3; echo \"$a back\" >&3; read b <&3; echo \"$b\""},
                    test::new_folder(), tight(), &channel);
  EXPECT_EQ(r.ending, Ending::finished);
  EXPECT_EQ(heard, "hello back\n");
  EXPECT_EQ(r.output, "you said so\n");
}

TEST_P(Sandbox, StopsAProgramThatTheChannelHasEnoughOf) {
  const SandboxChannel channel{"", [](std::string_view, std::string&) { return false; }};
  const SandboxResult r =
      run_sandboxed({"sh", "-c", "echo >&3; sleep 600"}, test::new_folder(), tight(), &channel);
  EXPECT_EQ(r.ending, Ending::stopped);
}

TEST_P(Sandbox, SaysThatAProgramIsNotThere) {
  const SandboxResult r = run_sandboxed({"no-such-program-7"}, test::new_folder(), tight());
  EXPECT_EQ(run_sandboxed({"./no-such-program-7"}, test::new_folder(), tight()).ending,
            Ending::not_started);
  EXPECT_EQ(r.ending, Ending::not_started);
}

}  // namespace
}  // namespace fuseline::lab
