// The transposed rotation: the gradient of rope. The partner's sine is taken.
//   y1 = x1 cos1 + x2 sin2,  y2 = x2 cos2 - x1 sin1
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"

namespace fuseline {

constinit const PairFunction pairs::rope_inverse{
    .name = "rope_inverse",
    .maths = rotated_by([](PairOfNumbers x, PairOfNumbers cos, PairOfNumbers sin) {
      return PairOfNumbers{x.first * cos.first + x.second * sin.second,
                           x.second * cos.second - x.first * sin.first};
    }),
    .backward = true,
    .apart = "rope_apart<{}, true{}>",
    .instructions = 2};

}  // namespace fuseline
