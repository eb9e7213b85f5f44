// What a norm without a weight and its gradient have in common.
#pragma once

#include "model/operators/operator.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

// Mean (0 where it is not taken off) and scale of row m.
struct RowMoments {
  double mean = 0, r = 0;
};
RowMoments row_moments(const reference::View<const double>& x, const Normalise& norm,
                       std::int64_t m);

// The row without its mean, and its scale.
struct RowScale {
  Value centred, r;
};
RowScale row_scale_of(Emitter& e, Value x, std::int64_t width, const Normalise& norm);

}  // namespace fuseline
