// Recency in the simulated L2: a list of runs, not of chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/memory/chunk_region.h"
#include "sim/memory/l2_page.h"

namespace fuseline {

// An access that is the latest of some of its chunks: the up to 16 neighbours of a page that it
// touched. Linked by age. Two lie in one line of the memory that simulates.
struct L2Run {
  std::uint32_t page = 0;
  std::uint8_t first = 0, count = 0, stride = 0;  // its place
  std::uint8_t chunks_left = 0;                   // whose latest access it is
  std::uint8_t evicted = 0;                       // chunks at the front that eviction has passed
  bool written = false;                           // all of its parts was overwritten, not read
  // Not 0 where each of its chunks was brought in by it: then as many bytes of each are resident,
  // first_part, all dirty if written or else none. Pages say nothing of such chunks.
  std::uint16_t equal_bytes = 0;
  // What the access touches of the first and the last chunk. Of those between them it touches the
  // rows or columns of the first, and all of them in the direction of the run.
  ChunkPart first_part{}, last_part{};
  std::uint32_t asked_before = 0;      // when it was the newest: what had been asked for, in steps
  std::uint32_t newer = 0, older = 0;  // of one that is free: `older` is the next free one

  // Whether no chunk has left it for a later access.
  [[nodiscard]] bool is_whole() const { return chunks_left + evicted == count; }
  [[nodiscard]] std::size_t first_left() const { return first + std::size_t{evicted} * stride; }
  [[nodiscard]] bool is_at(const L2Place& place) const {
    return first == place.first && count == place.count && stride == place.stride;
  }
};
static_assert(sizeof(L2Run) == 32);

class L2Runs {
 public:
  L2Run& operator[](std::uint32_t number) { return runs_[number]; }
  const L2Run& operator[](std::uint32_t number) const { return runs_[number]; }
  // 0: there is none.
  [[nodiscard]] std::uint32_t oldest() const { return runs_[0].newer; }
  [[nodiscard]] std::size_t size() const { return used_; }

  // A new one, the newest, no chunk of which is here yet.
  std::uint32_t add(const L2Place& place, ChunkPart first, ChunkPart last, bool written,
                    std::uint32_t asked_before) {
    if (free_ == 0) {
      free_ = static_cast<std::uint32_t>(runs_.size());
      runs_.emplace_back();
    }
    const std::uint32_t number = free_;
    L2Run& run = runs_[number];
    free_ = run.older;
    ++used_;
    run = {place.page, place.first, place.count, place.stride, 0,           0,
           written,    0,           first,       last,         asked_before};
    link(number);
    return number;
  }
  void remove(std::uint32_t number) {
    unlink(number);
    runs_[number].older = free_;
    free_ = number;
    --used_;
  }
  void make_newest(std::uint32_t number, std::uint32_t asked_before) {
    unlink(number);
    link(number);
    runs_[number].asked_before = asked_before;
  }
  // One of its chunks has a later access, or is gone.
  void leave(std::uint32_t number) {
    if (--runs_[number].chunks_left == 0) remove(number);
  }
  // All that is dirty was written back.
  void all_clean() {
    for (L2Run& run : runs_) run.written = false;
  }
  void clear() { *this = {}; }

 private:
  void link(std::uint32_t number) {
    const std::uint32_t second = runs_[0].older;
    runs_[number].newer = 0;
    runs_[number].older = second;
    runs_[second].newer = number;
    runs_[0].older = number;
  }
  void unlink(std::uint32_t number) {
    const L2Run& run = runs_[number];
    runs_[run.newer].older = run.older;
    runs_[run.older].newer = run.newer;
  }

  std::vector<L2Run> runs_ = std::vector<L2Run>(1);  // 0 is the list's head
  std::uint32_t free_ = 0;                           // the first of them; 0: none
  std::size_t used_ = 0;
};

}  // namespace fuseline
