#include "model/primitives/access.h"

#include <algorithm>

#include "base/units.h"

namespace fuseline {

std::int64_t Access::rows_of_tile(std::int64_t first, std::int64_t count) const {
  if (reach == Reach::rows_above) return count + std::min(halo, first % tokens);
  if (reach == Reach::rows_below) {
    const std::int64_t left = tokens - 1 - (first + count - 1) % tokens;  // of the last sequence
    return count + std::min(halo, left);
  }
  if (reach == Reach::sequence_rows) return (first + count - 1) / tokens - first / tokens + 1;
  std::int64_t rows = 0;  // each sequence of the tile takes its own
  for (std::int64_t row = first; row < first + count; row += tokens - row % tokens)
    rows += std::max<std::int64_t>(0, halo - row % tokens);
  return rows;
}

std::int64_t Access::elements() const {
  const std::int64_t rows = reach == Reach::gathered_rows ? indices : operand.rows;
  const std::int64_t all = checked_product<Bytes>(rows, operand.cols).value();
  return reach == Reach::part_columns ? part.cols(all) : all;
}

Operand Access::moved() const {
  Operand moving = operand;
  if (reach != Reach::part_columns) return moving;
  moving.cols = part.cols(operand.cols);
  moving.col_begin += operand.cols / part.group * part.begin;
  return moving;
}

}  // namespace fuseline
