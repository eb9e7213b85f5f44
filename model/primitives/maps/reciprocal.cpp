// One over the value.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::reciprocal{.name = "reciprocal",
                                             .maths = of_one([](float x) { return 1.0F / x; }),
                                             .text = "1 / {}",
                                             .instructions = 1};

}  // namespace fuseline
