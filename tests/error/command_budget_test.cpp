// What a command may take: seconds of all cores together, and memory. A budget is some five times
// what the command took on a 2-core machine at 2.6 GHz, so that it speaks of a mistake and not of a
// busy machine.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/temporary_folder.h"
#include "cli/app.h"

namespace fuseline {
namespace {

struct Budget {
  std::vector<std::string> arguments;
  double seconds = 0;
  double megabytes = 0;
  int status = 0;
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

// A place for what the commands write.
std::string at(const std::string& name) {
  static const TemporaryFolder folder("budgets");
  return (folder.path() / name).string();
}

// The names at the beginning of the lines below "commands:".
std::vector<std::string> commands_of_help() {
  std::ostringstream out, error;
  run_cli({"--help"}, out, error);
  std::istringstream lines(out.str());
  std::vector<std::string> names;
  bool among = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "commands:") {
      among = true;
    } else if (among && line.starts_with("  ")) {
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else {
      among = false;
    }
  }
  return names;
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
      {{"verdict", "--model", "llama2-7b-mlp", "--gpu", "a100-sxm-80gb", "--batch", "4", "--seq",
        "1024", "--policy", "per-operator"},
       1,
       60},
      {{"diff", "scenarios/llama2-7b-h200.toml", "scenarios/llama2-7b-h100.toml"}, 1, 60},
      {{"import", "graph", "tests/model/import/graphs/llama.json"}, 0.5, 60},
      {{"import", "trace", "docs/torch-trace.json", "--model", "tinyllama", "--gpu", "h200",
        "--phase", "decode", "--context", "2048", "--date", "2026-11-20", "--output", at("traced")},
       5,
       100},
      {{"import", "ncu", "docs/nsight-compute.csv", "--model", "gpt2-xl", "--gpu", "h200",
        "--policy", "eager", "--phase", "forward", "--seq", "2048", "--date", "2026-11-20",
        "--output", at("counted")},
       0.5,
       60},
      {{"calibrate", "--bands", "scenarios/measurements/h200-fuseline", "--output",
        at("bands.toml")},
       20,
       100},
      {{"sweep", "--gpu", "h200", "--seq", "256:2048:x2", "--policy", "eager,coda"}, 1, 60},
      {{"report", "scenarios/llama2-7b-h200.toml", "--output", at("report.html")}, 1.5, 100},
      {{"audit", "70b-on-24-gb"}, 3, 100},
      // So few steps do not train, which the exit status says.
      {{"train", "--steps", "2", "--batch", "2", "--seq", "16", "--policy", "coda", "--output",
        at("curves.csv")},
       10,
       200,
       1},
      {{"export", "--model", "tinyllama", "--gpu", "h200", "--policy", "coda", "--to",
        at("exported")},
       40,
       900},
      {{"lab", "start", "1", "--student", "ada", "--dir", at("lab-01")}, 0.5, 60},
      {{"course", "init", at("course"), "--student", "ada,bob", "--labs", "1,3"}, 0.5, 60},
      {{"course", "grade", at("course")}, 0.5, 60},
  };
  std::set<std::string> budgeted;
  for (const Budget& b : budgets) {
    budgeted.insert(b.arguments.front());
    const std::string what = fmt::format("fuseline {}", fmt::join(b.arguments, " "));
    const Taken taken = run(b.arguments);
    fmt::print("{:6.2f} of {:g} s, {:4.0f} of {:g} MB: {}\n", taken.seconds, b.seconds,
               taken.megabytes, b.megabytes, what);
    if (taken.status == 3 && b.arguments.front() == "export") continue;  // no CUDA toolkit
    EXPECT_EQ(taken.status, b.status) << what;
    EXPECT_LE(taken.seconds, b.seconds) << what;
    EXPECT_LE(taken.megabytes, b.megabytes) << what;
  }
  // A new command gets a budget too. The window is another program, and to measure takes a GPU.
  for (const std::string& command : commands_of_help())
    if (command != "gui" && command != "measure") {
      EXPECT_TRUE(budgeted.contains(command)) << "no budget for fuseline " << command;
    }
}

// A command that takes long says so; whoever waits knows that it has not stopped. It is ended once
// it has spoken.
TEST(CommandsThatTakeLong, SayThatTheyStillWork) {
  const std::vector<std::vector<std::string>> commands = {
      {"limits", "--model", "llama2-7b", "--gpu", "h200"},  // says how far it is
      {"calibrate", "scenarios/measurements/h200-pytorch", "--gpu", "h200"},
      {"program", "export", "docs/handbook/swish.fuse", "--to", at("slow-export")}};
  for (const std::vector<std::string>& words : commands) {
    const std::string file = at("said");
    const std::string command = fmt::format(
        "cd '{0}' && ('{1}' '{2}' >/dev/null 2>'{3}' & program=$!; for i in $(seq 100); do "
        "if [ -s '{3}' ] || ! kill -0 $program; then break; fi; sleep 0.1; done; kill $program)",
        FUSELINE_SOURCE_DIR, FUSELINE_BINARY, fmt::join(words, "' '"), file);
    static_cast<void>(std::system(command.c_str()));
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    if (line.starts_with("fuseline: not available")) continue;  // no CUDA toolkit is here
    EXPECT_TRUE(line.starts_with("fuseline: still working: ")) << words.front() << ": " << line;
  }
}

}  // namespace
}  // namespace fuseline
