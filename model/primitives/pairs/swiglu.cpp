// silu(gate) · up.
#include "model/primitives/all_pairs.h"
#include "model/primitives/pair_columns.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const PairFunction pairs::swiglu{
    .name = "swiglu",
    .maths = joined_by([](float gate, float up) { return gate * sigmoid_of(gate) * up; }),
    .instructions = 6};

}  // namespace fuseline
