// Where the simulated L2 keeps what it holds: chunks in pages of 16 × 16 neighbours.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/units.h"
#include "sim/memory/chunk_region.h"

namespace fuseline {

// Nearly always what is resident of a chunk and what of it is dirty are rectangles, and lie here.
// Otherwise `resident` and `dirty` are empty, and `odd` is the place of both among the odd ones.
struct L2Chunk {
  ChunkPart resident, dirty;
  std::uint32_t odd = 0;
};

// Chunks of one page, in a row or one below the other. Those side by side in the page's own order
// have the stride 1.
struct L2Place {
  std::uint32_t page;
  std::uint8_t first, count, stride;
};

// What most accesses ask lies in the first line of the memory that simulates; the runs of chunks
// side by side in the page's order lie in one more.
struct alignas(64) L2Page {
  static constexpr std::size_t kEdge = 16;  // chunks
  static constexpr std::size_t kChunks = kEdge * kEdge;

  // What is asked less often.
  struct Rest {
    std::array<L2Chunk, kChunks> chunks;  // unless the run says it of all its chunks
    std::bitset<kChunks> uncertain;
  };

  std::uint64_t key = 0;
  ElementSize element{};
  std::unique_ptr<Rest> rest;               // made when something is put there
  std::array<std::uint16_t, kEdge> here{};  // a bit a chunk, in the page's order
  std::uint16_t chunks_here = 0, uncertain_here = 0;
  bool by_rows = false;                     // its order: row by row, or column by column
  std::array<std::uint32_t, kChunks> runs;  // of a chunk that is here: its latest access

  Rest& others() {
    if (!rest) rest = std::make_unique<Rest>();
    return *rest;
  }
  [[nodiscard]] bool is_here(std::size_t at) const {
    return (here[at / kEdge] >> at % kEdge & 1U) != 0;
  }
  void set_here(std::size_t at) {
    here[at / kEdge] = static_cast<std::uint16_t>(here[at / kEdge] | 1U << at % kEdge);
  }
  void set_gone(std::size_t at) {
    here[at / kEdge] = static_cast<std::uint16_t>(here[at / kEdge] & ~(1U << at % kEdge));
  }
  [[nodiscard]] std::size_t row(std::size_t at) const { return by_rows ? at / kEdge : at % kEdge; }
  [[nodiscard]] std::size_t col(std::size_t at) const { return by_rows ? at % kEdge : at / kEdge; }
  // Of chunks one below the other, or in a row.
  [[nodiscard]] bool is_down(std::size_t stride) const { return (stride == 1) != by_rows; }

  [[nodiscard]] bool nothing_is_here(const L2Place& place) const {
    if (place.stride == 1) return (here[place.first / kEdge] & bits(place.first, place.count)) == 0;
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < place.count; ++i) any |= here[place.first / kEdge + i];
    return (any >> place.first % kEdge & 1U) == 0;
  }
  // `count` chunks from `first` on are here now, and that run is their latest access.
  void come(std::size_t first, std::size_t stride, std::size_t count, std::uint32_t run) {
    std::uint32_t* place = &runs[first];
    if (stride == 1) {
      here[first / kEdge] = static_cast<std::uint16_t>(here[first / kEdge] | bits(first, count));
      for (; count >= 4; count -= 4, place += 4) place[0] = place[1] = place[2] = place[3] = run;
      for (; count > 0; --count) *place++ = run;
      return;
    }
    const auto bit = static_cast<std::uint16_t>(1U << first % kEdge);
    for (std::size_t i = 0; i < count; ++i, place += stride) {
      here[first / kEdge + i] = static_cast<std::uint16_t>(here[first / kEdge + i] | bit);
      *place = run;
    }
  }
  void go(std::size_t first, std::size_t stride, std::size_t count) {
    if (stride == 1) {
      here[first / kEdge] = static_cast<std::uint16_t>(here[first / kEdge] & ~bits(first, count));
      return;
    }
    const auto others = static_cast<std::uint16_t>(~(1U << first % kEdge));
    for (std::size_t i = 0; i < count; ++i)
      here[first / kEdge + i] = static_cast<std::uint16_t>(here[first / kEdge + i] & others);
  }

 private:
  static std::uint32_t bits(std::size_t first, std::size_t count) {
    return ((1U << count) - 1) << first % kEdge;
  }
};

}  // namespace fuseline
