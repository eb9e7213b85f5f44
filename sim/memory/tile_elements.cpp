#include "sim/memory/tile_elements.h"

#include <algorithm>

#include "base/error.h"

namespace fuseline {
namespace {

// How many of a table's `cols` columns, which begin again after `width`, a row of the tile meets.
// `partners`: where the values lie that meet the table.
std::int64_t table_columns(ColumnRange tile, const std::vector<ColumnRange>& partners,
                           std::int64_t width, std::int64_t cols) {
  // Columns next to each other meet one range of the table, or its end and its begin.
  std::vector<ColumnRange> met;
  const auto meet = [&](std::int64_t begin, std::int64_t end) {
    if (begin < std::min(end, cols)) met.push_back({begin, std::min(end, cols)});
  };
  for (const ColumnRange& p : partners) {
    const std::int64_t begin = std::max(tile.begin, p.begin);
    const std::int64_t end = std::min({tile.end, p.end, begin + width});
    if (begin >= end) continue;
    const std::int64_t first = (begin - p.begin) % width;
    meet(first, std::min(first + end - begin, width));
    meet(0, first + end - begin - width);
  }
  std::ranges::sort(met, {}, &ColumnRange::begin);
  std::int64_t sum = 0, counted = 0;  // columns below `counted` are in the sum
  for (const ColumnRange& range : met) {
    sum += std::max<std::int64_t>(0, range.end - std::max(range.begin, counted));
    counted = std::max(counted, range.end);
  }
  return sum;
}

// The same of all tiles of a row.
std::int64_t table_columns(const Tiling& tiling, const std::vector<ColumnRange>& partners,
                           std::int64_t width, std::int64_t cols) {
  std::int64_t sum = 0;
  for (std::int64_t first = 0; first < tiling.cols; first += tiling.tile.n)
    sum += table_columns(ColumnRange{first, std::min(tiling.cols, first + tiling.tile.n)}, partners,
                         width, cols);
  return sum;
}

std::vector<ColumnRange> partners_of(Value table, const ValueAnalysis& values) {
  std::vector<ColumnRange> spans;
  for (const Value v : values.partners(table)) spans.push_back(values.span(v));
  return spans;
}

}  // namespace

std::int64_t loaded_elements(const Access& access, const Primitive& primitive, const Tiling& tiling,
                             const ValueAnalysis& values) {
  switch (access.reach) {
    case Reach::tile:
    case Reach::part_columns:
    case Reach::gathered_rows:
    case Reach::summed_rows:
      return access.elements();
    case Reach::row_numbers:
      return access.elements() * tiling.col_tiles();
    case Reach::col_numbers:
      return access.elements() * tiling.row_tiles();
    case Reach::all_numbers:
      return access.elements() * tiling.row_tiles() * tiling.col_tiles();
    case Reach::rows_above:
    case Reach::rows_below:
    case Reach::sequence_rows:
    case Reach::rows_before: {
      std::int64_t rows = 0;
      for (std::int64_t first = 0; first < tiling.rows; first += tiling.tile.m)
        rows += access.rows_of_tile(first, std::min(tiling.tile.m, tiling.rows - first));
      return checked_product<Bytes>(rows, access.operand.cols).value();
    }
    case Reach::table:
      return tiling.rows * tiling.batch *
             table_columns(tiling, partners_of(primitive.defines().front(), values),
                           access.period > 0 ? access.period : access.operand.cols,
                           access.operand.cols);
    case Reach::partials:
      break;
  }
  FUSELINE_ASSERT(false, "partials are loaded as tiles");
}

std::int64_t needed_elements(const Access& access, const Primitive& primitive, const Tiling& tiling,
                             const ValueAnalysis& values, const TileNeeds& needs) {
  const std::int64_t first_rows = std::min(tiling.tile.m, tiling.rows);
  const auto tiles = [](const std::vector<ColumnRange>& all) { return std::ssize(all); };
  const std::int64_t below = tiling.row_tiles() - 1;
  const Value made = primitive.defines().empty() ? -1 : primitive.defines().front();
  // Columns of what is made in all tiles of a row that need it.
  const auto columns = [&](const std::vector<ColumnRange>& all) {
    std::int64_t sum = 0;
    for (const ColumnRange& tile : all)
      sum += std::max<std::int64_t>(0, values.columns(made, tile).count());
    return sum;
  };
  switch (access.reach) {
    case Reach::row_numbers:
      return access.elements() / std::max<std::int64_t>(1, tiling.rows) *
             (tiles(needs.first) * first_rows + tiles(needs.others) * (tiling.rows - first_rows));
    case Reach::all_numbers:
      return access.elements() * (tiles(needs.first) + tiles(needs.others) * below);
    case Reach::col_numbers:
      if (made < 0) break;
      // The taps of a convolution are several numbers of a column.
      return access.elements() / values.width(made) *
             (columns(needs.first) + columns(needs.others) * below);
    case Reach::tile:
    case Reach::part_columns:
    case Reach::gathered_rows: {
      if (made < 0 || values.form(made) != Form::tile) break;
      const std::int64_t first = columns(needs.first), others = columns(needs.others);
      if (first == others && first == values.width(made)) break;
      return access.elements() * (first * first_rows + others * (tiling.rows - first_rows)) /
             std::max<std::int64_t>(1, values.width(made) * tiling.rows);
    }
    case Reach::table: {
      const std::vector<ColumnRange> partners = partners_of(made, values);
      const std::int64_t period = access.period > 0 ? access.period : access.operand.cols;
      const auto met = [&](const std::vector<ColumnRange>& all) {
        std::int64_t sum = 0;
        for (const ColumnRange& tile : all)
          sum += table_columns(tile, partners, period, access.operand.cols);
        return sum;
      };
      return met(needs.first) * first_rows + met(needs.others) * (tiling.rows - first_rows);
    }
    case Reach::sequence_rows:
    case Reach::summed_rows:
    case Reach::rows_above:
    case Reach::rows_below:
    case Reach::rows_before:
      if (made < 0 || values.form(made) != Form::tile || columns(needs.first) >= values.width(made))
        break;
      return loaded_elements(access, primitive, tiling, values) / values.width(made) *
             columns(needs.first);
    case Reach::partials:
      break;
  }
  return loaded_elements(access, primitive, tiling, values);
}

}  // namespace fuseline
