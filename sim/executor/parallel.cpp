#include "sim/executor/parallel.h"

#include <omp.h>

#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace fuseline::executor {

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FUSELINE_PLAIN_THREADS true
#endif
#elif defined(__SANITIZE_THREAD__)
#define FUSELINE_PLAIN_THREADS true
#endif
#ifndef FUSELINE_PLAIN_THREADS
#define FUSELINE_PLAIN_THREADS false
#endif

// For ThreadSanitizer, which does not see how OpenMP's library synchronises.
template <class Work>
void on_plain_threads(int threads, std::int64_t count, const Work& work) {
  std::atomic<std::int64_t> next = 0;
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (std::int64_t i = next++; i < count; i = next++) work(i, t);
    });
}

}  // namespace

int available_threads() { return omp_get_num_procs(); }

void parallel_for(const Workers& workers, std::int64_t count,
                  const std::function<void(std::int64_t, int)>& f) {
  std::exception_ptr failure;
  std::int64_t failed_index = std::numeric_limits<std::int64_t>::max();
  std::mutex mutex;
  std::atomic<bool> abandon = false;
  const auto stopped = [&] { return workers.stop != nullptr && workers.stop->load(); };
  const auto work = [&](std::int64_t index, int thread) {
    if (abandon || stopped()) return;
    try {
      f(index, thread);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      if (index < failed_index) {
        failed_index = index;
        failure = std::current_exception();
      }
      abandon = true;
    }
  };
  if (workers.threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) work(i, 0);
  } else if (FUSELINE_PLAIN_THREADS) {
    on_plain_threads(workers.threads, count, work);
  } else {
#pragma omp parallel for schedule(dynamic, 1) num_threads(workers.threads)
    for (std::int64_t i = 0; i < count; ++i) work(i, omp_get_thread_num());
  }
  if (failure) std::rethrow_exception(failure);
  if (stopped()) throw Cancelled("stopped");
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
