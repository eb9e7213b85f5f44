// The difference of two values.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::sub{
    .name = "sub", .maths = of_two([](float x, float z) { return x - z; }), .text = "{} - {}"};

}  // namespace fuseline
