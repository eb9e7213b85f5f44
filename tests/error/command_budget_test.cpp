// What a command may take: seconds of all cores together, and memory. A budget is some five times
// what the command took on a 2-core machine at 2.6 GHz, so that it speaks of a mistake and not of a
// busy machine.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fuseline {
namespace {

struct Budget {
  std::vector<std::string> arguments;
  double seconds = 0;
  double megabytes = 0;
};

struct Taken {
  int status = -1;
  double seconds = 0, megabytes = 0;
};

Taken run(const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>(FUSELINE_BINARY)};
  for (const std::string& a : arguments) words.push_back(const_cast<char*>(a.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);  // or the child prints it too
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) != nullptr && chdir(FUSELINE_SOURCE_DIR) == 0)
      execv(FUSELINE_BINARY, words.data());
    _exit(127);
  }
  int status = 0;
  rusage used{};
  Taken taken;
  if (wait4(child, &status, 0, &used) != child) return taken;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  taken.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  taken.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  taken.megabytes = static_cast<double>(used.ru_maxrss) / 1024;
  return taken;
}

TEST(CommandBudgets, TimeAndMemoryStayWithinThem) {
  const std::vector<Budget> budgets = {
      {{"--version"}, 0.2, 60},
      {{"list", "models"}, 0.7, 60},
      {{"predict", "--model", "llama2-7b", "--gpu", "h200"}, 0.7, 60},
      {{"predict", "--model", "llama2-7b", "--gpu", "h200", "--phase", "train"}, 2, 80},
      {{"predict", "--model", "deepseek-v3", "--gpu", "h200"}, 3, 80},
      {{"explain", "--model", "llama2-7b", "--gpu", "h200", "--policy", "coda"}, 0.6, 60},
      {{"gemm", "--m", "8192", "--n", "28672", "--k", "8192", "--gpu", "h200"}, 0.6, 60},
      {{"limits", "--model", "llama2-7b", "--gpu", "h200"}, 25, 100},
      {{"compare", "scenarios/measurements/h200-pytorch"}, 7, 200},
      {{"judge"}, 7, 120},
      {{"program", "check", "docs/handbook/swish.fuse"}, 0.5, 60},
      {{"program", "predict", "docs/handbook/swish.fuse", "--gpu", "h200"}, 0.5, 60},
      {{"program", "verify", "docs/handbook/swish.fuse", "--size", "M=64,D=128,F=256"}, 1, 200},
      {{"search", "--model", "llama3-8b", "--gpu", "h200", "--phase", "decode"}, 4, 100},
      {{"verify", "--model", "tinyllama", "--seq", "32", "--policy", "coda"}, 10, 900},
  };
  for (const Budget& b : budgets) {
    const std::string what = fmt::format("fuseline {}", fmt::join(b.arguments, " "));
    const Taken taken = run(b.arguments);
    fmt::print("{:6.2f} of {:g} s, {:4.0f} of {:g} MB: {}\n", taken.seconds, b.seconds,
               taken.megabytes, b.megabytes, what);
    EXPECT_EQ(taken.status, 0) << what;
    EXPECT_LE(taken.seconds, b.seconds) << what;
    EXPECT_LE(taken.megabytes, b.megabytes) << what;
  }
}

}  // namespace
}  // namespace fuseline
