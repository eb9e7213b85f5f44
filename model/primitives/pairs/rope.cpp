// Rotary embedding: pairs turn by the angles of their columns.
//   y1 = x1 cos1 - x2 sin1,  y2 = x2 cos2 + x1 sin2
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"

namespace fuseline {

constinit const PairFunction pairs::rope{
    .name = "rope",
    .maths = rotated_by([](PairOfNumbers x, PairOfNumbers cos, PairOfNumbers sin) {
      return PairOfNumbers{x.first * cos.first - x.second * sin.first,
                           x.second * cos.second + x.first * sin.second};
    }),
    .apart = "rope_apart<{}, false{}>",
    .instructions = 2};

}  // namespace fuseline
