// One over the square root.
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::rsqrt{
    .name = "rsqrt",
    .maths = of_one([](float x) { return 1.0F / std::sqrt(x); }),
    .instructions = 4};

}  // namespace fuseline
