#include "sim/memory/tile_needs.h"

#include <algorithm>
#include <optional>
#include <set>

namespace fuseline {

namespace {

// Whether a tile runs what the primitive stores: vectors along rows are stored by the first tile of
// a row, those along columns by the first of a column, all else by the tiles that hold its columns.
bool stores_in(const Primitive& p, const ValueAnalysis& values, ColumnRange tile, bool first_row) {
  for (const Access& a : p.accesses()) {
    if (!a.store) continue;
    if (a.reach == Reach::row_numbers) return tile.begin == 0;
    if (a.reach == Reach::col_numbers && !first_row) return false;
    return !values.columns(p.uses().front(), tile).empty();
  }
  return false;
}

}  // namespace

std::vector<TileNeeds> tile_needs(const Program& program, const ValueAnalysis& values,
                                  std::int64_t cols, std::int64_t width) {
  const std::vector<Primitive>& body = program.body;
  std::vector<TileNeeds> needs(body.size());
  for (std::int64_t begin = 0; begin < cols; begin += width) {
    const ColumnRange tile{begin, std::min(cols, begin + width)};
    for (const bool first_row : {true, false}) {
      std::set<Value> wanted;
      for (std::size_t i = body.size(); i-- > 0;) {
        const bool makes =
            std::ranges::any_of(body[i].defines(), [&](Value v) { return wanted.contains(v); });
        if (!makes && !stores_in(body[i], values, tile, first_row)) continue;
        for (const Value v : body[i].uses()) wanted.insert(v);
        (first_row ? needs[i].first : needs[i].others).push_back(tile);
      }
    }
  }
  return needs;
}

}  // namespace fuseline
