// What the tiles of a program need: a tile whose columns a step's users do not have leaves it out.
#pragma once

#include <cstdint>
#include <vector>

#include "model/primitives/values.h"
#include "model/program.h"
#include "sim/memory/traffic.h"

namespace fuseline {

// Of one primitive of a body, over all column tiles: those of the first row of tiles stand apart,
// because they alone store vectors along columns.
struct TileNeeds {
  std::vector<ColumnRange> first{}, others{};  // columns of the index space, by tile that runs it
};

// By primitive of the body, for tiles of `width` columns of an index space of `cols`.
std::vector<TileNeeds> tile_needs(const Program& program, const ValueAnalysis& values,
                                  std::int64_t cols, std::int64_t width);

}  // namespace fuseline
