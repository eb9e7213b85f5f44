#include "model/operators/support/head_norm.h"

#include <cmath>

#include "base/error.h"

namespace fuseline {

using namespace reference;

double head_scale(const View<const double>& x, const HeadNorm& norm, std::int64_t m,
                  std::int64_t first) {
  FUSELINE_ASSERT(norm.head_width > 0 && x.cols % norm.head_width == 0, "a row of no whole heads");
  double squares = 0;
  for (std::int64_t c = 0; c < norm.head_width; ++c) squares += x(m, first + c) * x(m, first + c);
  return 1.0 / std::sqrt(squares / static_cast<double>(norm.head_width) + norm.eps);
}

Value head_scale(Emitter& e, Value x, const HeadNorm& norm) {
  const Value s = e.group_reduce(reductions::sum_squares, x, norm.head_width, "s");
  const Value mean =
      e.map(maps::scale_by_constant, {s}, "m", 1.0 / static_cast<double>(norm.head_width));
  const Value shifted = e.map(maps::add_constant, {mean}, "m", norm.eps);
  return e.map(maps::rsqrt, {shifted}, "r");
}

}  // namespace fuseline
