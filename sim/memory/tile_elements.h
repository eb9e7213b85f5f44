// How many elements of an operand the tiles of a kernel load for one of its primitives.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/primitives/primitive.h"
#include "model/primitives/values.h"
#include "sim/memory/tile_needs.h"
#include "sim/memory/tile_shape.h"

namespace fuseline {

// The index space [rows, cols] × batch in tiles, and the columns in which the primitives that
// follow run.
struct Tiling {
  std::int64_t rows = 1, cols = 1, batch = 1;
  TileShape tile;
  std::int64_t first_col = 0, end_col = 1;
  std::vector<std::int64_t> groups{};  // of rows that share no tile

  [[nodiscard]] std::int64_t row_tiles() const {
    if (groups.empty()) return ceil_div(rows, tile.m) * batch;
    std::int64_t tiles = 0;
    for (const std::int64_t count : groups) tiles += ceil_div(count, tile.m);
    return tiles;
  }
  [[nodiscard]] std::int64_t col_tiles() const {
    return ceil_div(end_col, tile.n) - first_col / tile.n;
  }
};

// Elements that all tiles together load of an operand.
std::int64_t loaded_elements(const Access& access, const Primitive& primitive, const Tiling& tiling,
                             const ValueAnalysis& values);

// The same of the tiles that need it, each of which takes its own columns.
std::int64_t needed_elements(const Access& access, const Primitive& primitive, const Tiling& tiling,
                             const ValueAnalysis& values, const TileNeeds& needs);

}  // namespace fuseline
