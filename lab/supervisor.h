// The process between the checker and a sandboxed program. It starts the program, adopts whatever
// the program leaves behind, and ends all of it: when the program ends, when the checker asks, and
// when the checker dies.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "lab/sandbox.h"

namespace fuseline::lab {

// What the supervisor writes to its report pipe when everything has ended.
struct SupervisorReport {
  int status = 0;  // of the program, as wait() gives it
  rusage usage{};  // of the program and what it left behind
};

struct SupervisedProgram {
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* folder = nullptr;
  int output = -1;
  int channel = -1;  // -1: none
  int filter = -1;   // -1: none
  int report = -1;
  pid_t checker = -1;
};

inline constexpr int kNotStartedStatus = 127;
inline constexpr int kChannelNumber = 3;

// In a child of the checker, straight after fork(): only calls that are safe there. SIGTERM asks it
// to end everything.
[[noreturn]] void supervise(const SupervisedProgram& program, const SandboxLimits& limits);

}  // namespace fuseline::lab
