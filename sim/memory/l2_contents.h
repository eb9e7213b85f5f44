// What an L2 holds at one moment, as a value that can be compared, kept and put back.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/memory/chunk_region.h"

namespace fuseline {

// Chunks in the order in which they would be evicted. Tensors are numbered in the order in which
// they appear here: which tensor is which the caller knows, so that contents are equal when the
// same happened to other tensors.
struct L2Contents {
  // Chunks in a row, or one below the other, all with the same elements.
  struct Piece {
    std::uint32_t tensor = 0;
    std::uint32_t row_block = 0, col_block = 0;
    std::uint32_t count = 0;
    bool down = false;
    ChunkPart resident, dirty;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  std::int64_t capacity = 0;
  std::vector<Piece> pieces;
  std::vector<ElementSize> elements;  // by tensor
  std::uint64_t hash = 0;             // of all the above
  friend bool operator==(const L2Contents&, const L2Contents&) = default;

  void set_hash();
  [[nodiscard]] std::size_t memory() const {
    return sizeof *this + pieces.capacity() * sizeof(Piece) +
           elements.capacity() * sizeof(ElementSize);
  }
};

}  // namespace fuseline
