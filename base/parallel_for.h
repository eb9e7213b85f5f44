// Independent pieces of work on several threads. All OpenMP of the program is behind this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace fuseline {

// One thread for each core that this process may use.
int available_threads();

struct ParallelOptions {
  unsigned threads = 0;                     // 0: available_threads()
  const std::atomic<bool>* stop = nullptr;  // set: no further piece is begun
  // After each piece: how many are done, of how many. Never called by two threads at once.
  std::function<void(std::size_t done, std::size_t count)> progress = {};
};

// Calls work(0) ... work(count - 1), each once, in any order, on several threads. When pieces
// throw, the exception of the first of them in order is thrown again after all threads have ended.
// False when it was stopped before the last piece.
bool parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options = {});

// The loop below it, for pieces of microseconds: f(index, thread) with thread in [0, threads), no
// lock and no progress. Indices are handed out in order.
void parallel_loop(int threads, std::int64_t count, const std::atomic<bool>* stop,
                   const std::function<void(std::int64_t index, int thread)>& f);

}  // namespace fuseline
