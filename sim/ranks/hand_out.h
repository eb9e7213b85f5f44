// Independent points of work, handed out to threads and ranks as they become free.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/ranks/ranks.h"

namespace fuseline {

struct HandOut {
  // On any rank, from several threads at once. What it throws ends the work on all ranks.
  std::function<std::string(std::size_t point)> work;
  // At the first rank, in the thread that called: in any order, each point once.
  std::function<void(std::size_t point, const std::string& text)> take;
  std::size_t threads = 0;                  // of this rank; 0: one for each core it may use
  const std::atomic<bool>* stop = nullptr;  // of the first rank: no further point is begun
  // How many are done since the call; at the first rank.
  std::function<void(std::size_t done, std::size_t count)> progress{};
};

// Every rank must call it. `points`: what is to be done, as the first rank says it. The first rank
// works too, in threads of its own, while it hands out points and takes results. False when it was
// stopped. Throws at every rank what `work` or `take` threw at one of them.
bool hand_out(Ranks& ranks, const std::vector<std::size_t>& points, const HandOut& how);

}  // namespace fuseline
