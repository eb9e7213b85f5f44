// Commands in a shell whose MPI runs for anybody, on one core as on many.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "tests/cli/cli_run.h"

namespace fuseline::test {

struct Shell {
  int status = -1;
  std::string said;
};

// A folder of its own for what an mpirun keeps. In the one that all share, an mpirun that ends can
// take away what another has just begun to use ("unable to create the desired directory"). Its
// path is short: names of sockets have 107 characters.
class MpiFolder {
 public:
  MpiFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "mpi-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("no folder " + path);
    path_ = path;
  }
  ~MpiFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MpiFolder(const MpiFolder&) = delete;
  MpiFolder& operator=(const MpiFolder&) = delete;
  [[nodiscard]] std::string text() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline Shell shell(const std::filesystem::path& folder, const std::string& command) {
  const std::filesystem::path said = folder / "said";
  const MpiFolder of_mpi;
  const std::string line = "cd '" + folder.string() +
                           "' && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                           "OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1 "
                           // A rank that waits leaves its core to the others.
                           "OMPI_MCA_mpi_yield_when_idle=1 "
                           "OMPI_MCA_orte_tmpdir_base='" +
                           of_mpi.text() + "' && { " + command + "\n} > said 2>&1";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(said)};
}

inline std::size_t lines_in(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return 0;
  const std::string text = read_text(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The command on two ranks. The second one says which process it is, and is killed when `journal`
// has so many lines.
inline Shell shell_with_a_killed_rank(const std::filesystem::path& folder,
                                      const std::string& command, const std::string& journal,
                                      std::size_t lines) {
  namespace fs = std::filesystem;
  std::ofstream(folder / "second.sh")
      << "echo $$ > pid.part && mv pid.part pid && exec " + command + "\n";
  std::jthread killer([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (std::chrono::steady_clock::now() < end &&
           (lines_in(folder / journal) < lines || !fs::exists(folder / "pid")))
      std::this_thread::yield();
    if (fs::exists(folder / "pid")) kill(std::stoi(read_text(folder / "pid")), SIGKILL);
  });
  return shell(folder, "mpirun -n 1 " + command + " : -n 1 sh second.sh");
}

}  // namespace fuseline::test
