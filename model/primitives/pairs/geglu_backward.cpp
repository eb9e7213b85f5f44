// The gradient of geglu, which is computed again.
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const PairFunction pairs::geglu_backward{
    .name = "geglu_backward",
    .maths = gradient_by([](float gate, float up, float d) {
      const float t = gelu_tanh_of(gate);
      return GradientOfPair{
          .gate = d * up * gelu_tanh_slope_of(gate), .up = d * t, .again = t * up};
    }),
    .backward = true,
    .device = R"(template <class Pairs, class D>
FUSELINE_HD auto geglu_backward(const Pairs& pairs, const D& d) {
  return pairs_gradient(pairs, d, [](float gate, float up, float dy) {
    const float t = gelu_tanh_of(gate);
    return PairGradient{dy * up * gelu_tanh_slope_of(gate), dy * t, t * up};
  });
}
)",
    .instructions = 15};

}  // namespace fuseline
