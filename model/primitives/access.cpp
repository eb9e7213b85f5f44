#include "model/primitives/access.h"

#include "base/units.h"

namespace fuseline {

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
