#include "sim/nests/loop_nest.h"

#include <fmt/format.h>

namespace fuseline {

std::string describe(const TileOrder& tiles) {
  std::string text;
  for (const TileOrder::Cut& cut : tiles.order) {
    if (!text.empty()) text += ", ";
    text += cut.edge > 0 ? fmt::format("{} by {}", cut.loop, cut.edge) : cut.loop + " whole";
  }
  return text;
}

}  // namespace fuseline
