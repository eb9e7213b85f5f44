#include "model/primitives/access.h"

#include <algorithm>

#include "base/units.h"

namespace fuseline {

std::int64_t Access::rows_of_tile(std::int64_t first, std::int64_t count) const {
  if (reach == Reach::rows_above) return count + std::min(halo, first % tokens);
  std::int64_t rows = 0;  // each sequence of the tile takes its own
  for (std::int64_t row = first; row < first + count; row += tokens - row % tokens)
    rows += std::max<std::int64_t>(0, halo - row % tokens);
  return rows;
}

std::int64_t Access::elements() const {
  const std::int64_t rows = reach == Reach::gathered_rows ? indices : operand.rows;
  const std::int64_t all = checked_product<Bytes>(rows, operand.cols).value();
  return reach == Reach::halves ? all / 2 : all;
}

Operand Access::moved() const {
  Operand part = operand;
  if (reach != Reach::halves) return part;
  part.cols /= 2;
  if (upper) part.col_begin += part.cols;
  return part;
}

}  // namespace fuseline
