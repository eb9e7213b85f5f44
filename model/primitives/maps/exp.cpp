// The exponential.
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::exp{.name = "exp",
                                      .maths = of_one([](float x) { return std::exp(x); }),
                                      .exponential = true,
                                      .instructions = 2};

}  // namespace fuseline
