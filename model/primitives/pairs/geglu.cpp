// gelu(gate) · up, GELU in its tanh form.
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const PairFunction pairs::geglu{
    .name = "geglu",
    .maths = joined_by([](float gate, float up) { return gelu_tanh_of(gate) * up; }),
    .device = R"(template <class Pairs>
FUSELINE_HD auto geglu(const Pairs& pairs) {
  return join_pairs(pairs, [](float gate, float up) { return gelu_tanh_of(gate) * up; });
}
)",
    .instructions = 9};

}  // namespace fuseline
