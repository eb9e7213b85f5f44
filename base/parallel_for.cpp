#include "base/parallel_for.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fuseline {

bool parallel_for(std::size_t count, const std::function<void(std::size_t)>& work,
                  const ParallelOptions& options) {
  std::atomic<std::size_t> next = 0;
  std::size_t done = 0;
  std::mutex reporting;
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<bool> failed = false;
  const auto run = [&] {
    const auto stopped = [&] { return failed || (options.stop != nullptr && *options.stop); };
    while (!stopped()) {
      const std::size_t i = next++;
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        thrown[i] = std::current_exception();
        failed = true;
        return;
      }
      const std::lock_guard lock(reporting);
      ++done;
      if (options.progress) options.progress(done, count);
    }
  };
  const unsigned wanted =
      options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < std::min<std::size_t>(wanted, count); ++t) {
      helpers.emplace_back(run);
    }
    run();
  }
  for (const std::exception_ptr& e : thrown) {
    if (e) std::rethrow_exception(e);
  }
  return done == count;
}

}  // namespace fuseline
