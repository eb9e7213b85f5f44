#include "sim/nests/held_tiles.h"

#include <algorithm>

namespace fuseline {

std::vector<HeldTensor> ways_to_hold(const std::vector<TiledLoop>& loops,
                                     const std::vector<std::string>& along) {
  const auto has = [&](const TiledLoop& loop) {
    return std::ranges::find(along, loop.name) != along.end();
  };
  std::vector<HeldTensor> ways;
  for (std::size_t inside = 0; inside <= loops.size(); ++inside) {
    HeldTensor way{inside, 1, 1};
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (has(loops[i]))
        way.elements *= static_cast<double>(i < inside ? std::min(loops[i].edge, loops[i].size)
                                                       : loops[i].size);
    // Loops that leave the tile as it is repeat what the loops inside them change.
    std::size_t changes = inside;
    while (changes > 0 && (!has(loops[changes - 1]) || loops[changes - 1].tiles() == 1)) --changes;
    for (std::size_t i = 0; i < changes; ++i)
      if (!has(loops[i])) way.passes *= loops[i].tiles();
    const bool beaten = std::ranges::any_of(ways, [&](const HeldTensor& w) {
      return w.elements <= way.elements && w.passes <= way.passes;
    });
    if (!beaten) ways.push_back(way);
  }
  return ways;
}

bool TrafficFront::takes(double capacity, double moved) const {
  const auto at = std::ranges::upper_bound(
      front_, capacity, {}, [](const TiledTraffic& t) { return t.capacity.as_double(); });
  return at == front_.begin() || moved < std::prev(at)->moved.as_double();
}

void TrafficFront::add(TiledTraffic tiling) {
  if (!takes(tiling.capacity.as_double(), tiling.moved.as_double())) return;
  const auto at = std::ranges::lower_bound(front_, tiling.capacity, {}, &TiledTraffic::capacity);
  auto last = at;
  while (last != front_.end() && last->moved >= tiling.moved) ++last;
  front_.insert(front_.erase(at, last), std::move(tiling));
}

}  // namespace fuseline
