// Commands in a shell whose MPI runs for anybody, on one core as on many.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/cli/cli_run.h"

namespace fuseline::test {

struct Shell {
  int status = -1;
  std::string said;
};

inline Shell shell(const std::filesystem::path& folder, const std::string& command) {
  const std::filesystem::path said = folder / "said";
  const std::string line = "cd '" + folder.string() +
                           "' && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
                           "OMPI_MCA_rmaps_base_oversubscribe=1 OMP_NUM_THREADS=1 && { " +
                           command + "\n} > said 2>&1";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(said)};
}

}  // namespace fuseline::test
