// What a tensor moves in tiled loops, by how far out it is kept.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/nests/product_traffic.h"

namespace fuseline {

// Of an element of a sum that is not complete: fp32.
inline constexpr double kSumBytes = 4;

// A loop over tiles of one loop of the nest.
struct TiledLoop {
  std::string name;
  std::int64_t size = 0;
  std::int64_t edge = 0;
  [[nodiscard]] std::int64_t tiles() const { return (size + edge - 1) / edge; }
};

// One way of keeping a tensor: what lies in the near memory while the loops inside loop number
// `inside` run; how often all of the tensor passes.
struct HeldTensor {
  std::size_t inside = 0;  // 0: all of it, all the time
  double elements = 0;     // that lie in the near memory at once
  std::int64_t passes = 0;
};

// A tensor that the loops `along` number, in loops from the outermost inwards. Of each footprint
// the one that passes least; those that no other one beats in both.
std::vector<HeldTensor> ways_to_hold(const std::vector<TiledLoop>& loops,
                                     const std::vector<std::string>& along);

// Keeps the tilings that no other one beats in both, by rising capacity.
class TrafficFront {
 public:
  [[nodiscard]] bool takes(double capacity, double moved) const;
  void add(TiledTraffic tiling);
  [[nodiscard]] std::vector<TiledTraffic> take() { return std::move(front_); }

 private:
  std::vector<TiledTraffic> front_;
};

}  // namespace fuseline
