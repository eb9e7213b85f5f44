#include "sim/memory/tile_needs.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fuseline {

namespace {

// What the tiles ask of a primitive, looked up once for all of them.
struct Step {
  std::vector<Value> defines, uses;
  std::optional<Reach> stored{};  // where it stores something
};

std::vector<Step> steps_of(const std::vector<Primitive>& body) {
  std::vector<Step> steps;
  for (const Primitive& p : body) {
    Step step{.defines = p.defines(), .uses = p.uses()};
    for (const Access& a : p.accesses())
      if (a.store && !step.stored) step.stored = a.reach;
    steps.push_back(std::move(step));
  }
  return steps;
}

// Whether a tile runs what the primitive stores: vectors along rows are stored by the first tile of
// a row, those along columns by the first of a column, all else by the tiles that hold its columns.
bool stores_in(const Step& step, const ValueAnalysis& values, ColumnRange tile, bool first_row) {
  if (!step.stored) return false;
  if (*step.stored == Reach::row_numbers) return tile.begin == 0;
  if (*step.stored == Reach::col_numbers && !first_row) return false;
  return !values.columns(step.uses.front(), tile).empty();
}

}  // namespace

std::vector<TileNeeds> tile_needs(const Program& program, const ValueAnalysis& values,
                                  std::int64_t cols, std::int64_t width) {
  const std::vector<Step> steps = steps_of(program.body);
  std::vector<TileNeeds> needs(steps.size());
  std::vector<Value> wanted;
  const auto is_wanted = [&](Value v) { return std::ranges::find(wanted, v) != wanted.end(); };
  for (std::int64_t begin = 0; begin < cols; begin += width) {
    const ColumnRange tile{begin, std::min(cols, begin + width)};
    for (const bool first_row : {true, false}) {
      wanted.clear();
      for (std::size_t i = steps.size(); i-- > 0;) {
        if (!std::ranges::any_of(steps[i].defines, is_wanted) &&
            !stores_in(steps[i], values, tile, first_row))
          continue;
        for (const Value v : steps[i].uses)
          if (!is_wanted(v)) wanted.push_back(v);
        (first_row ? needs[i].first : needs[i].others).push_back(tile);
      }
    }
  }
  return needs;
}

}  // namespace fuseline
