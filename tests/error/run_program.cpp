#include "tests/error/run_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace fuseline {

#ifdef FUSELINE_BINARY
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string read_all(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, const std::string& environment) {
  static int runs = 0;  // several runs in one test must not share a folder
  const fs::path root = fs::path(testing::TempDir()) /
                        ("run_program_" + std::to_string(getpid()) + "_" + std::to_string(runs++));
  const fs::path work = root / "work";
  fs::create_directories(work);

  std::string command = "cd " + quoted(work.string()) + " && ";
  if (!environment.empty()) command += "env " + quoted(environment) + " ";
  command += "timeout 100 " + quoted(FUSELINE_BINARY);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " >" + quoted((root / "out").string()) + " 2>" + quoted((root / "err").string()) +
             " </dev/null";

  ProgramRun run;
  run.available = true;
  const int result = std::system(command.c_str());
  run.status = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
  run.output = read_all(root / "out");
  run.error = read_all(root / "err");
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(work)) {
    run.files_left.push_back(entry.path().string());
  }
  fs::remove_all(root);
  return run;
}
#else
ProgramRun run_program(const std::vector<std::string>&, const std::string&) { return {}; }
#endif

}  // namespace fuseline
