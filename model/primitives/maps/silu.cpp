// x · sigmoid(x), also called swish.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const MapFunction maps::silu{.name = "silu",
                                       .maths = of_one([](float x) { return x * sigmoid_of(x); }),
                                       .exponential = true,
                                       .instructions = 5};

}  // namespace fuseline
