#include "base/parallel_for.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace fuseline {

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define FUSELINE_PLAIN_THREADS true
#endif
#elif defined(__SANITIZE_THREAD__)
#define FUSELINE_PLAIN_THREADS true
#endif
#ifndef FUSELINE_PLAIN_THREADS
#define FUSELINE_PLAIN_THREADS false
#endif

// For ThreadSanitizer, which does not see how OpenMP's library synchronises, and for Clang's
// AddressSanitizer, which takes what that library keeps for its threads for leaks.
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

void parallel_loop(int threads, std::int64_t count, const std::atomic<bool>* stop,
                   const std::function<void(std::int64_t, int)>& f) {
  std::exception_ptr failure;
  std::int64_t failed_index = std::numeric_limits<std::int64_t>::max();
  std::mutex mutex;
  std::atomic<bool> abandon = false;
  const auto work = [&](std::int64_t index, int thread) {
    if (abandon || (stop != nullptr && stop->load())) return;
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
  if (threads <= 1 || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) work(i, 0);
  } else if (FUSELINE_PLAIN_THREADS) {
    on_plain_threads(threads, count, work);
  } else {
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (std::int64_t i = 0; i < count; ++i) work(i, omp_get_thread_num());
  }
  if (failure) std::rethrow_exception(failure);
}

bool parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options) {
  const std::size_t wanted =
      options.threads > 0 ? options.threads : static_cast<std::size_t>(available_threads());
  std::size_t done = 0;
  std::mutex reporting;
  parallel_loop(static_cast<int>(std::min(wanted, count)), static_cast<std::int64_t>(count),
                options.stop, [&](std::int64_t index, int) {
                  work(static_cast<std::size_t>(index));
                  const std::scoped_lock lock(reporting);
                  ++done;
                  if (options.progress) options.progress(done, count);
                });
  return done == count;
}

}  // namespace fuseline
