// Partials of tile reductions whose blocks of partial_tile rows or columns several tiles share:
// each tile leaves its part, and the parts are joined in tile order when all tiles are done, so
// that the result does not depend on who came first.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "model/primitives/tile_context.h"

namespace fuseline::executor {

class PartialSums {
 public:
  // A tile's part of what the primitive with this index leaves. Thread-safe.
  void add(std::size_t primitive, Partials partials, const PartialRule& rule);
  // Joins and stores what add() collected.
  void finish(TileMemory& memory);

 private:
  struct Key {
    std::size_t primitive = 0;
    std::int64_t block = 0;
    std::int64_t across = 0;
    std::int64_t part = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Part {
    Partials partials;
    PartialRule rule;
  };
  std::mutex mutex_;
  std::map<Key, Part> parts_;
};

}  // namespace fuseline::executor
