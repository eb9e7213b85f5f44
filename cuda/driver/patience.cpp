#include "cuda/driver/patience.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

namespace fuseline::cuda {

void wait_patiently(const std::function<bool()>& finished, const std::string& doing,
                    Seconds patience) {
  using Clock = std::chrono::steady_clock;
  // What takes less is timed by others, and a sleep would make them wait for nothing.
  constexpr std::chrono::milliseconds kShort(5);
  constexpr std::chrono::microseconds kPause(200);
  const Clock::time_point start = Clock::now();
  double next = patience.value();
  while (!finished()) {
    const Clock::duration waited = Clock::now() - start;
    if (waited > kShort)
      std::this_thread::sleep_for(kPause);
    else
      std::this_thread::yield();
    const double seconds = std::chrono::duration<double>(waited).count();
    if (seconds < next) continue;
    fmt::print(stderr, "fuseline: the GPU has been at work for {:.0f} s: {}\n", seconds, doing);
    next = 2 * seconds;
  }
}

}  // namespace fuseline::cuda
