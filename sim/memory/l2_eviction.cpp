// Who leaves the simulated L2, and when.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/memory/l2_cache.h"

namespace fuseline {

void L2Cache::drop_regions(Chunk& chunk) {
  bits_.clear(odd_[chunk.odd].resident);
  bits_.clear(odd_[chunk.odd].dirty);
  free_odd_.push_back(chunk.odd);
}

// Returns the bytes that were dirty. Page and run stay, even if nothing is left in them.
std::int64_t L2Cache::forget(Page& page, std::size_t at) {
  Chunk chunk = chunk_at(page, at);
  const std::int64_t dirty = dirty_elements(chunk) * page.element;
  used_ -= resident_elements(chunk) * page.element;
  if (chunk.odd != 0) drop_regions(chunk);
  page.set_gone(at);
  --page.chunks_here;
  if (page.uncertain_here > 0) is_gone(page, at);
  return dirty;
}

void L2Cache::is_gone(Page& page, std::size_t at) {
  if (!page.rest->uncertain[at]) return;
  page.rest->uncertain[at] = false;
  --page.uncertain_here;
  --uncertain_;
}

// Where somebody watches, or what was here before the cache filled up is told apart, all leave at
// once.
void L2Cache::set_limit() {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const bool at_once = watcher_ != nullptr || past_ == Past::filling;
  limit_ = capacity_ + (at_once ? 0 : std::min(kMost, capacity_ / 16));
}

// Of a run that no chunk has left for another: as many as must go.
inline void L2Cache::evict_equal_chunks(Run& run, Page& page) {
  const std::int64_t over = used_ - capacity_;
  std::uint32_t count = run.chunks_left;
  std::int64_t bytes = std::int64_t{count} * run.equal_bytes;
  if (bytes > over) {  // then `over` is small, and a short division does
    count = (static_cast<std::uint32_t>(over) + run.equal_bytes - 1) / run.equal_bytes;
    bytes = std::int64_t{count} * run.equal_bytes;
  }
  const std::size_t first = run.first_left();
  page.go(first, run.stride, count);
  if (page.uncertain_here > 0) {
    for (std::uint32_t i = 0; i < count; ++i) is_gone(page, first + i * std::size_t{run.stride});
  }
  used_ -= bytes;
  if (run.written) hbm_write_ += bytes;
  run.evicted = static_cast<std::uint8_t>(run.evicted + count);
  run.chunks_left = static_cast<std::uint8_t>(run.chunks_left - count);
  page.chunks_here = static_cast<std::uint16_t>(page.chunks_here - count);
}

void L2Cache::evict_to_capacity() {
  if (used_ <= capacity_) return;
  if (past_ == Past::filling) end_filling();
  const std::int64_t before = used_;
  while (used_ > capacity_) {
    const std::uint32_t oldest = runs_.oldest();
    Run& run = runs_[oldest];
    const std::uint32_t number = run.page;
    Page& page = pages_[number];
    if (run.equal_bytes > 0 && run.is_whole()) {
      evict_equal_chunks(run, page);
    } else {
      evict_one_by_one(oldest, page);
    }
    if (run.chunks_left > 0 || oldest == current_) continue;
    runs_.remove(oldest);
    // The page of the access that goes on may be empty only for now.
    if (page.chunks_here == 0 && number != runs_[current_].page) pages_.free(number);
  }
  evicted_ += before - used_;
}

void L2Cache::evict_one_by_one(std::uint32_t number, Page& page) {
  Run& run = runs_[number];
  std::size_t at = run.first_left();
  for (; run.chunks_left > 0 && used_ > capacity_; ++run.evicted, at += run.stride) {
    if (!page.is_here(at) || page.runs[at] != number) continue;
    hbm_write_ += forget(page, at);
    --run.chunks_left;
  }
}

}  // namespace fuseline
