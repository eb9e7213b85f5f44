// `fuseline gui`: starts fuseline-gui, which lies beside this program where it was built.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/long_work.h"

namespace fuseline {

namespace {

constexpr const char* kWindow = "fuseline-gui";

std::filesystem::path window_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path window = self.parent_path() / kWindow;
  if (!error && std::filesystem::exists(window, error)) return window;
  throw MissingError(
      "the window was not built. On Debian: apt-get install qtbase5-dev libqt5svg5-dev "
      "libqcustomplot-dev graphviz, then build again");
}

}  // namespace

CommandResult gui_command(const Arguments& args) {
  const std::string program = window_program().string();
  std::vector<std::string> words = {program};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failure = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (failure != 0) {
    throw MissingError(program + " cannot be started: " + std::generic_category().message(failure));
  }
  StillWorking::hush();
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw InternalError("lost the window's process");
  }
  CommandResult result;  // the window has written its messages itself
  result.status =
      WIFEXITED(status) ? static_cast<ExitStatus>(WEXITSTATUS(status)) : ExitStatus::our_bug;
  return result;
}

}  // namespace fuseline
