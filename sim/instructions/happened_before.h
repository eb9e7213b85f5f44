// What threads of work know to have happened, through counters: vector clocks, and the writer of
// every element.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fuseline::executor {

// Elements of one tensor, or of a workspace.
struct Elements {
  std::string name;
  std::size_t first = 0;
};

class HappenedBefore {
 public:
  using Clock = std::vector<std::uint32_t>;  // by thread: the last of its steps that is known

  explicit HappenedBefore(std::size_t threads, std::size_t counters)
      : clocks_(threads, Clock(threads)), counters_(counters, Clock(threads)) {}

  Elements elements(std::string name, std::int64_t count) {
    const Elements made{std::move(name), writers_.size()};
    writers_.resize(writers_.size() + static_cast<std::size_t>(count));
    return made;
  }

  // The thread begins something new: what it writes from here on is later than what it told before.
  void begin(std::size_t thread) { ++clocks_[thread][thread]; }
  void adds(std::size_t thread, std::size_t counter) { join(counters_[counter], clocks_[thread]); }
  void saw(std::size_t thread, std::size_t counter) { join(clocks_[thread], counters_[counter]); }
  // The consumer of a slice knows what its loader knew when it loaded that slice, not what the
  // loader has seen since.
  [[nodiscard]] Clock now(std::size_t thread) const { return clocks_[thread]; }
  void follows(std::size_t thread, const Clock& moment) { join(clocks_[thread], moment); }

  void writes(std::size_t thread, const Elements& in, std::int64_t element) {
    Writer& w = writers_[in.first + static_cast<std::size_t>(element)];
    if (w.tick > 0) report(fmt::format("element {} of {} is written twice", element, in.name));
    w = {thread, clocks_[thread][thread]};
  }
  void reads(std::size_t thread, const Elements& in, std::int64_t element) {
    const Writer& w = writers_[in.first + static_cast<std::size_t>(element)];
    if (w.tick == 0)
      report(fmt::format("element {} of {} is read before it is written", element, in.name));
    else if (w.thread != thread && clocks_[thread][w.thread] < w.tick)
      report(fmt::format("element {} of {} is read, and no counter says that it was written",
                         element, in.name));
  }

  [[nodiscard]] std::vector<std::string> take_races() { return std::move(races_); }

 private:
  struct Writer {
    std::size_t thread = 0;
    std::uint32_t tick = 0;
  };

  static void join(Clock& to, const Clock& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = std::max(to[i], from[i]);
  }
  void report(std::string race) {
    constexpr std::size_t kMost = 8;
    if (races_.size() < kMost) races_.push_back(std::move(race));
  }

  std::vector<Clock> clocks_, counters_;
  std::vector<Writer> writers_;
  std::vector<std::string> races_;
};

}  // namespace fuseline::executor
