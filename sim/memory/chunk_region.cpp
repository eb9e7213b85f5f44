#include "sim/memory/chunk_region.h"

#include <algorithm>
#include <bit>

namespace fuseline {
namespace {

ChunkPart around(ChunkPart a, ChunkPart b) {
  return {std::min(a.row_begin, b.row_begin), std::max(a.row_end, b.row_end),
          std::min(a.col_begin, b.col_begin), std::max(a.col_end, b.col_end)};
}

bool touch(std::uint8_t a_begin, std::uint8_t a_end, std::uint8_t b_begin, std::uint8_t b_end) {
  return std::max(a_begin, b_begin) <= std::min(a_end, b_end);
}

// Two rectangles of the same rows that touch, or of the same columns, make one.
bool union_is_rectangle(ChunkPart a, ChunkPart b) {
  if (contains(b, a)) return true;
  if (a.row_begin == b.row_begin && a.row_end == b.row_end)
    return touch(a.col_begin, a.col_end, b.col_begin, b.col_end);
  if (a.col_begin == b.col_begin && a.col_end == b.col_end)
    return touch(a.row_begin, a.row_end, b.row_begin, b.row_end);
  return false;
}

std::uint64_t columns(ChunkPart part) {
  const int count = part.col_end - part.col_begin;
  const std::uint64_t low = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  return low << part.col_begin;
}

}  // namespace

std::int64_t RegionBits::add(ChunkRegion& region, ChunkPart part) {
  const std::int64_t before = region.elements;
  if (before == 0) {
    region = {part, 0, static_cast<std::int32_t>(part.elements())};
    return part.elements();
  }
  if (region.bits == 0) {
    if (contains(region.box, part)) return 0;
    if (union_is_rectangle(region.box, part)) {
      region.box = around(region.box, part);
      region.elements = static_cast<std::int32_t>(region.box.elements());
      return region.elements - before;
    }
    region.bits = take();
    set(pool_[region.bits], region.box);
  }
  const std::int64_t added = set(pool_[region.bits], part);
  region.box = around(region.box, part);
  region.elements += static_cast<std::int32_t>(added);
  if (region.elements == region.box.elements()) {  // a rectangle again
    free_.push_back(region.bits);
    region.bits = 0;
  }
  return added;
}

void RegionBits::clear(ChunkRegion& region) {
  if (region.bits != 0) free_.push_back(region.bits);
  region = {};
}

std::uint32_t RegionBits::take() {
  if (free_.empty()) {
    pool_.emplace_back();
    return static_cast<std::uint32_t>(pool_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  pool_[place].fill(0);
  return place;
}

std::int64_t RegionBits::set(Bits& bits, ChunkPart part) {
  const std::uint64_t mask = columns(part);
  std::int64_t added = 0;
  for (std::size_t row = part.row_begin; row < part.row_end; ++row) {
    added += std::popcount(mask & ~bits[row]);
    bits[row] |= mask;
  }
  return added;
}

}  // namespace fuseline
