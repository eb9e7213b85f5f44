// Another framework on the same block, in a process of its own that waits between its bursts:
// cuda/rivals/rival_serve.py has the lines that it writes and reads.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"

namespace fuseline::cuda {

// A block as the rival got it ready.
struct RivalBlock {
  std::string execution{};
  std::string framework{};  // "PyTorch 2.11.0"
  std::string problem{};    // why it is not there; empty when it is
  int layers = 1;           // with weights of their own
  int blocks = 1;           // that a replay runs through
};

struct RivalLimits {
  std::chrono::milliseconds ready{600'000};   // until all blocks are
  std::chrono::milliseconds answer{120'000};  // to one request
  std::chrono::milliseconds end{5'000};       // from the last request to the end of the process
};

// Errors of all functions: MissingError when the process does not start, ends, takes too long or
// writes what is no answer, with its last words; Cancelled when `stop` is set.
class RivalProcess {
 public:
  // `command` is a line for the shell.
  RivalProcess(std::string command, const std::atomic<bool>* stop, RivalLimits limits = {});
  // Ends the process and all that it started.
  ~RivalProcess();
  RivalProcess(const RivalProcess&) = delete;
  RivalProcess& operator=(const RivalProcess&) = delete;

  // Waits for `count` blocks.
  std::vector<RivalBlock> get_ready(std::size_t count);
  // The time of a block in each of `replays` replays without a pause, `warm_ups` more before.
  std::vector<Seconds> replay(std::size_t block, int warm_ups, int replays);

 private:
  struct Process;
  std::unique_ptr<Process> process_;
};

}  // namespace fuseline::cuda
