// Which elements of a chunk the L2 holds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace fuseline {

// The unit of residence is a block of 64 × 64 elements of a 2-D tensor (8 KiB in bf16).
inline constexpr std::int64_t kChunkEdge = 64;

// Elements of a chunk: rows and columns within it, half-open, 0 to 64.
struct ChunkPart {
  std::uint8_t row_begin = 0, row_end = 0;
  std::uint8_t col_begin = 0, col_end = 0;
  [[nodiscard]] std::int64_t elements() const {
    return std::int64_t{1} * (row_end - row_begin) * (col_end - col_begin);
  }
  // All four at once: parts are compared at every access.
  friend bool operator==(ChunkPart a, ChunkPart b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
};

inline bool contains(ChunkPart outer, ChunkPart inner) {
  return outer.row_begin <= inner.row_begin && inner.row_end <= outer.row_end &&
         outer.col_begin <= inner.col_begin && inner.col_end <= outer.col_end;
}

// A set of elements of one chunk. Nearly always it is a rectangle; only other shapes have a bit an
// element, kept in RegionBits.
struct ChunkRegion {
  ChunkPart box;           // the rectangle, or the smallest one around the bits
  std::uint32_t bits = 0;  // place in RegionBits; 0 = the rectangle itself
  std::int32_t elements = 0;
};

// Memory of the regions that are no rectangles.
class RegionBits {
 public:
  // Adds the part. Returns how many of its elements were not in the region before.
  std::int64_t add(ChunkRegion& region, ChunkPart part);
  // Empties the region and takes its memory back.
  void clear(ChunkRegion& region);

 private:
  using Bits = std::array<std::uint64_t, kChunkEdge>;  // one word a row
  std::uint32_t take();
  std::int64_t set(Bits& bits, ChunkPart part);

  std::vector<Bits> pool_ = std::vector<Bits>(1);  // place 0 stands for none
  std::vector<std::uint32_t> free_;
};

}  // namespace fuseline
