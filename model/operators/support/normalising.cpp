#include "model/operators/support/normalising.h"

#include <cmath>

namespace fuseline {

using namespace reference;

RowMoments row_moments(const View<const double>& x, const Normalise& norm, std::int64_t m) {
  const double width = static_cast<double>(x.cols);
  RowMoments moments;
  if (norm.centred)
    for (std::int64_t n = 0; n < x.cols; ++n) moments.mean += x(m, n) / width;
  double squares = 0;
  for (std::int64_t n = 0; n < x.cols; ++n) {
    const double centred = x(m, n) - moments.mean;
    squares += centred * centred;
  }
  moments.r = 1.0 / std::sqrt(squares / width + norm.eps);
  return moments;
}

RowScale row_scale_of(Emitter& e, Value x, std::int64_t width, const Normalise& norm) {
  Value centred = x;
  if (norm.centred) centred = e.map(maps::sub, {x, e.row_reduce(reductions::mean, x, "mu")}, "xc");
  const Value s = e.row_reduce(reductions::sum_squares, centred, "s");
  const Value var = e.map(maps::scale_by_constant, {s}, "v", 1.0 / static_cast<double>(width));
  const Value shifted = e.map(maps::add_constant, {var}, "v", norm.eps);
  return {centred, e.map(maps::rsqrt, {shifted}, "r")};
}

}  // namespace fuseline
