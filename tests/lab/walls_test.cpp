// What a program can reach from within walls, tried by a program that tries.
#include "lab/walls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "lab/sandbox.h"
#include "tests/lab/lab_support.h"

namespace fuseline::lab {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Prints a line for each thing it tries: the name, and 1 where it went well.
constexpr const char* kAttacker = R"(
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sched.h>
#include <cstdio>
#include <cstdlib>
static void say(const char* what, bool worked) { std::printf("%s %d\n", what, worked); std::fflush(stdout); }
int main(int, char** words) {
  say("fork", [] { pid_t p = fork(); if (p == 0) _exit(0); return p > 0; }());
  say("vfork", [] { pid_t p = vfork(); if (p == 0) _exit(0); return p > 0; }());
  say("trace", ptrace(PTRACE_TRACEME, 0, 0, 0) == 0);
  say("namespace", unshare(CLONE_NEWUSER) == 0);
  say("passwords", open("/etc/passwd", O_RDONLY) >= 0);
  say("secret", open(words[1], O_RDONLY) >= 0);
  say("home", open("/root", O_RDONLY) >= 0 || open("/home", O_RDONLY) >= 0);
  say("processes", open("/proc/1/status", O_RDONLY) >= 0);
  say("write-here", open("left", O_WRONLY | O_CREAT, 0600) >= 0);
  say("write-tmp", open("/tmp/left", O_WRONLY | O_CREAT, 0600) >= 0 || mkdir("/left", 0700) == 0);
  sockaddr_in to{}; to.sin_family = AF_INET; to.sin_port = htons(std::atoi(words[2]));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  say("network", s >= 0 && connect(s, (sockaddr*)&to, sizeof to) == 0);
  say("checker", kill(std::atoi(words[3]), 0) == 0);
  say("end", true);
}
)";

// A port of this machine at which somebody listens.
struct ListeningPort {
  int number = 0;
  int at = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ListeningPort() {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof here;
    EXPECT_EQ(bind(at, reinterpret_cast<sockaddr*>(&here), size), 0);
    EXPECT_EQ(listen(at, 1), 0);
    EXPECT_EQ(getsockname(at, reinterpret_cast<sockaddr*>(&here), &size), 0);
    number = ntohs(here.sin_port);
  }
  ~ListeningPort() { close(at); }
};

class SlowWalls : public ::testing::Test {
 protected:
  void SetUp() override {
    if (sandbox_walls().bubblewrap.empty()) GTEST_SKIP() << sandbox_walls().why_not;
    test::write_file(folder_ / "attacker.cpp", kAttacker);
    const SandboxResult built =
        run_sandboxed({"c++", "-w", "-o", "attacker", "attacker.cpp"}, folder_,
                      {.cpu_seconds = 60, .wall_seconds = 120, .may_start_processes = true});
    ASSERT_EQ(built.exit_status, 0) << built.output;
    test::write_file(secret_, "the secret of some course");
  }

  std::string attack(const SandboxLimits& limits) const {
    const ListeningPort port;
    const SandboxResult r = run_sandboxed(
        {"./attacker", secret_.string(), std::to_string(port.number), std::to_string(getpid())},
        folder_, limits);
    EXPECT_EQ(r.ending, Ending::finished) << r.output;
    return r.output;
  }

  fs::path folder_ = test::new_folder();
  fs::path secret_ = test::new_folder() / "secret.txt";
};

TEST_F(SlowWalls, NothingOutsideIsInReach) {
  EXPECT_EQ(attack({.file_size = Bytes(0)}),
            "fork 0\nvfork 0\ntrace 0\nnamespace 0\npasswords 0\nsecret 0\nhome 0\nprocesses 0\n"
            "write-here 0\nwrite-tmp 0\nnetwork 0\nchecker 0\nend 1\n");
  EXPECT_FALSE(fs::exists(folder_ / "left"));
}

// As a compiler runs: it starts processes and writes into its folder, and no more than that.
TEST_F(SlowWalls, ACompilerMayWriteIntoItsFolderAlone) {
  EXPECT_EQ(attack({.may_start_processes = true}),
            "fork 1\nvfork 1\ntrace 0\nnamespace 0\npasswords 0\nsecret 0\nhome 0\nprocesses 0\n"
            "write-here 1\nwrite-tmp 0\nnetwork 0\nchecker 0\nend 1\n");
}

// A source can name any file. Within walls the compiler finds the system's and its own.
TEST_F(SlowWalls, ASourceCannotIncludeTheSecret) {
  test::write_file(folder_ / "thief.cpp", "#include \"" + secret_.string() + "\"\n");
  const SandboxResult r = run_sandboxed({"c++", "-c", "thief.cpp"}, folder_,
                                        {.cpu_seconds = 60, .may_start_processes = true});
  EXPECT_THAT(r.output, HasSubstr("No such file"));
  EXPECT_EQ(r.output.find("some course"), std::string::npos);
}

class PathOfPrograms {
 public:
  explicit PathOfPrograms(const std::string& path) {
    if (const char* before = std::getenv("PATH")) before_ = before;
    setenv("PATH", path.c_str(), 1);
  }
  ~PathOfPrograms() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(Walls, WhyThereAreNoneIsSaidPlainly) {
  {
    const PathOfPrograms nothing(test::new_folder().string());
    EXPECT_EQ(sandbox_walls().bubblewrap, "");
    EXPECT_EQ(sandbox_walls().why_not, "bubblewrap (bwrap) is not installed");
  }
  // One that is there and refuses, as in many containers.
  const fs::path folder = test::new_folder();
  test::write_file(folder / "bwrap",
                   "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n");
  ASSERT_EQ(chmod((folder / "bwrap").c_str(), 0755), 0);
  const PathOfPrograms refusing(folder.string() + ":" + std::getenv("PATH"));
  EXPECT_EQ(sandbox_walls().bubblewrap, "");
  EXPECT_EQ(sandbox_walls().why_not,
            "bubblewrap is refused here (bwrap: No permissions to create new namespace)");
  // What runs then runs with the limits alone.
  const SandboxResult r =
      run_sandboxed({"sh", "-c", "echo here"}, test::new_folder(), {.may_start_processes = true});
  EXPECT_EQ(r.output, "here\n");
}

}  // namespace
}  // namespace fuseline::lab
