#include "sim/executor/parallel.h"

namespace fuseline::executor {

void parallel_for(const Workers& workers, std::int64_t count,
                  const std::function<void(std::int64_t, int)>& f) {
  parallel_loop(workers.threads, count, workers.stop, f);
  if (workers.stop != nullptr && workers.stop->load()) throw Cancelled("stopped");
}

void parallel_for(const Workers& workers, const Loop& loop,
                  const std::function<void(std::int64_t, int)>& f) {
  // Half a millisecond of work; to wake the threads and to wait for the last one takes some
  // microseconds, but milliseconds when other programs have the cores.
  constexpr double kShort = 4e6;
  Workers chosen = workers;
  if (loop.operations < kShort && !workers.short_loops_too) chosen.threads = 1;
  parallel_for(chosen, loop.count, f);
}

}  // namespace fuseline::executor
