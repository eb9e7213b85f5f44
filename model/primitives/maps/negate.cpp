// The negative.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::negate{
    .name = "negate", .maths = of_one([](float x) { return -x; }), .text = "-{}"};

}  // namespace fuseline
