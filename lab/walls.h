// Walls around a program, by bubblewrap (bwrap): it sees the system's programs and libraries and
// one folder, no network, no other process, and can make no call that leads out. Without bubblewrap
// the limits of lab/sandbox.h are all there is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fuseline::lab {

struct WallRules {
  bool may_write = true;  // into the folder
  bool may_start_processes = false;
};

// bwrap in PATH; empty when there is none.
std::string find_bubblewrap();

// The descriptor at which bwrap reads the filter of system calls.
inline constexpr int kFilterNumber = 4;

// The words that run `command` in `folder` within walls. Both programs are looked for in PATH.
// Empty when the command's program is not there.
std::vector<std::string> walled_command(const std::string& bubblewrap,
                                        const std::vector<std::string>& command,
                                        const std::filesystem::path& folder,
                                        const WallRules& rules);

// "NAME=value" for a program within walls: nothing of ours but PATH and where libraries are.
std::vector<std::string> walled_environment(const std::filesystem::path& folder);

// A descriptor to read the filter from, for the caller to close; -1 where it cannot be made. Of the
// calls that a program within walls does not get: those that look into or make namespaces and other
// processes' memory, and, unless the rules say so, those that start processes, for root too.
int open_call_filter(const WallRules& rules);

}  // namespace fuseline::lab
