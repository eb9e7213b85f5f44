// The square.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::square{.name = "square",
                                         .maths = of_one([](float x) { return x * x; })};

}  // namespace fuseline
