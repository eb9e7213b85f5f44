// Loops over tiles on several threads: how many, and what a stop means.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <stdexcept>

#include "base/parallel_for.h"

namespace fuseline::executor {

// Thrown out of long work when Workers::stop was set.
class Cancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Workers {
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;  // looked at before every tile
  bool short_loops_too = false;  // threads also where they take longer to meet than to work
};

// How much there is to do: indices, and operations (additions, loads, ...) of all of them together.
struct Loop {
  std::int64_t count = 0;
  double operations = 0;
};

using fuseline::available_threads;

// Calls f(index, thread) once for each index in [0, count), thread in [0, workers.threads); indices
// are handed out in order. The exception of the lowest index is thrown again when all have stopped.
void parallel_for(const Workers& workers, std::int64_t count,
                  const std::function<void(std::int64_t, int)>& f);
// The same; a short loop runs on one thread.
void parallel_for(const Workers& workers, const Loop& loop,
                  const std::function<void(std::int64_t, int)>& f);

}  // namespace fuseline::executor
