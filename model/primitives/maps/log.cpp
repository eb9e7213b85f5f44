// The natural logarithm.
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::log{
    .name = "log", .maths = of_one([](float x) { return std::log(x); }), .instructions = 25};

}  // namespace fuseline
