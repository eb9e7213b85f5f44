// What integer sets say of a loop nest: whether an order of its iterations respects every
// dependence, whether its tiles are independent, how many elements a tile touches. These are
// theorems: isl decides them for all iterations at once, for every size that the loops may have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/nests/loop_nest.h"

namespace fuseline {

// Two iterations that a schedule takes in the wrong order, or that lie in tiles that may run at the
// same time, as isl prints them: "product[0, 0, 1] -> store[0, 0]".
struct BrokenDependence {
  std::string iterations;
};

class NestSets {
 public:
  // Asserts that the nest's texts are what isl reads.
  explicit NestSets(const LoopNest& nest);
  ~NestSets();
  NestSets(NestSets&&) noexcept;
  NestSets& operator=(NestSets&&) noexcept;

  // Pairs of iterations that touch the same element, one of them writing it, the first one first in
  // the nest's own order. Terms of one sum do not depend on each other. As isl prints them.
  [[nodiscard]] std::string dependences() const;

  // Iterations in the order of their tiles, tile by tile, and within a tile in the nest's own
  // order. A statement without a loop waits until that loop's last tile where it reads what the
  // loop makes, and else runs in the first one. Empty: every dependence is respected.
  [[nodiscard]] std::optional<BrokenDependence> broken_by(const TileOrder& tiles) const;

  // The same where tiles run at the same time: a dependence must not leave its tile.
  [[nodiscard]] std::optional<BrokenDependence> crosses(const TileOrder& tiles) const;

  // Whether a tile's elements of the array are, for every statement that touches it, a rectangle:
  // then their number is the product of its sides. True for all sizes and edges of tiles.
  [[nodiscard]] bool footprint_is_rectangle(const std::string& array) const;

  // Distinct elements of the array that the first tile touches, counted one by one.
  [[nodiscard]] std::int64_t footprint(const std::string& array, const TileOrder& tile) const;

 private:
  struct Sets;
  std::unique_ptr<Sets> sets_;
};

}  // namespace fuseline
