// Runs a program in a process of its own with limits: processor time, wall-clock time, memory, file
// size, output. Where bubblewrap is to be had it runs within walls (lab/walls.h): no network, no
// files but its own and the system's, no process left or seen. Where it is not, the limits stop
// accidents (endless loops, memory bombs, floods of output) and are no wall against an attacker,
// who has the rights of the user that runs the check.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace fuseline::lab {

struct SandboxLimits {
  std::int64_t cpu_seconds = 10;
  std::int64_t wall_seconds = 20;
  Bytes memory{std::int64_t{1} << 30};  // address space
  Bytes file_size{std::int64_t{64} << 20};
  Bytes output{std::int64_t{64} << 10};  // of standard output and error together
  Bytes stack{std::int64_t{1} << 20};
  bool may_start_processes = false;  // without walls not enforced for root
  bool within_walls = true;          // where they are to be had; false: never
};

// Tried once in this process for each bwrap that PATH leads to.
struct SandboxWalls {
  std::string bubblewrap;  // its path; empty: there are no walls
  std::string why_not;     // "bubblewrap (bwrap) is not installed"; empty with walls
};
SandboxWalls sandbox_walls();

// For whoever runs other people's functions: why they ran without walls, and what to do; empty with
// walls.
std::string note_without_walls();

// A conversation with the program over its file descriptor 3.
struct SandboxChannel {
  std::string greeting;  // sent at once
  // Takes what the program sent and appends to `reply` what to send back. False: stop the program.
  std::function<bool(std::string_view received, std::string& reply)> take;
};

// stopped: the channel wanted no more, or the program did not read what it was sent.
enum class Ending : std::uint8_t {
  finished,
  timeout,
  memory,
  crashed,
  output_flood,
  not_started,
  stopped,
};

// The exit status by which a program says that an allocation failed.
inline constexpr int kOutOfMemoryStatus = 86;

struct SandboxResult {
  Ending ending = Ending::finished;
  int exit_status = 0;  // when finished
  std::string signal;   // when crashed: "SIGSEGV"
  std::string output;   // standard output and error, mixed, up to the limit
};

// `command`: the program (searched in PATH) and its arguments; it runs in `folder`, in which it may
// write unless `limits.file_size` is 0. Standard input is empty; the environment within walls is
// PATH and little else, without walls this one's without the variable that names a course's secret.
// The program and what it started are gone when this returns, and when this process dies.
SandboxResult run_sandboxed(const std::vector<std::string>& command,
                            const std::filesystem::path& folder, const SandboxLimits& limits,
                            const SandboxChannel* channel = nullptr);

// Why it ended as it did, in a sentence without a full stop: "it ran longer than 10 s ..."; empty
// when it finished.
std::string describe(const SandboxResult& result, const SandboxLimits& limits);

}  // namespace fuseline::lab
