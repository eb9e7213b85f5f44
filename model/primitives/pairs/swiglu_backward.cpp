// The gradient of swiglu, which is computed again: with s = sigmoid(gate) and t = gate·s it is
// (d·up·(s + t(1-s)), d·t), and t·up again.
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const PairFunction pairs::swiglu_backward{
    .name = "swiglu_backward",
    .maths = gradient_by([](float gate, float up, float d) {
      const float s = sigmoid_of(gate);
      const float t = gate * s;
      return GradientOfPair{.gate = d * up * (s + t * (1.0F - s)), .up = d * t, .again = t * up};
    }),
    .backward = true,
    .instructions = 11};

}  // namespace fuseline
