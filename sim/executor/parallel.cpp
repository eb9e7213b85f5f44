#include "sim/executor/parallel.h"

#include <omp.h>

#include <exception>
#include <limits>

namespace fuseline::executor {

int available_threads() { return omp_get_num_procs(); }

void parallel_for(const Workers& workers, std::int64_t count,
                  const std::function<void(std::int64_t, int)>& f) {
  std::exception_ptr failure;
  std::int64_t failed_index = std::numeric_limits<std::int64_t>::max();
  std::atomic<bool> abandon = false;
  const auto stopped = [&] { return workers.stop != nullptr && workers.stop->load(); };
  const auto work = [&](std::int64_t index, int thread) {
    if (abandon || stopped()) return;
    try {
      f(index, thread);
    } catch (...) {
#pragma omp critical(fuseline_parallel_for)
      if (index < failed_index) {
        failed_index = index;
        failure = std::current_exception();
      }
      abandon = true;
    }
  };
  if (workers.threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) work(i, 0);
  } else {
#pragma omp parallel for schedule(dynamic, 1) num_threads(workers.threads)
    for (std::int64_t i = 0; i < count; ++i) work(i, omp_get_thread_num());
  }
  if (failure) std::rethrow_exception(failure);
  if (stopped()) throw Cancelled("stopped");
}

}  // namespace fuseline::executor
