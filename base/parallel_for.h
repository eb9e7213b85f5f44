// Independent pieces of work on all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace fuseline {

struct ParallelOptions {
  unsigned threads = 0;                     // 0: as many as the machine has
  const std::atomic<bool>* stop = nullptr;  // set: no further piece is begun
  // After each piece: how many are done, of how many. Never called by two threads at once.
  std::function<void(std::size_t done, std::size_t count)> progress = {};
};

// Calls work(0) ... work(count - 1), each once, in any order, on several threads. When pieces
// throw, the exception of the first of them in order is thrown again after all threads have ended.
// False when it was stopped before the last piece.
bool parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options = {});

}  // namespace fuseline
