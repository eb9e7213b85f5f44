// Graphviz' dot as a process of its own.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "gui/model/dot_layout.h"

extern char** environ;

namespace fuseline::gui {

namespace {

[[noreturn]] void dot_is_missing(const std::string& program) {
  throw MissingError("Graphviz is not here (no program " + program +
                     "): install it for a better layout, on Debian with apt install graphviz");
}

int exit_status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

std::string run_dot(const std::string& dot, const std::string& program) {
  const TemporaryFolder folder("fuseline-dot");
  const std::string in = folder.path() / "block.dot", out = folder.path() / "block.plain";
  std::ofstream(in) << dot;
  std::string name = program, format = "-Tplain", to = "-o" + out, from = in;
  char* const arguments[] = {name.data(), format.data(), to.data(), from.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, name.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) dot_is_missing(program);
  const int status = exit_status_of(child);
  if (status == 127) dot_is_missing(program);
  std::ostringstream text;
  text << std::ifstream(out).rdbuf();
  if (status != 0 || text.str().empty()) {
    throw InputError({.file = program,
                      .message = "the layout failed with exit status " + std::to_string(status)});
  }
  return text.str();
}

}  // namespace fuseline::gui
