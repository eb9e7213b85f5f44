// A value and a constant.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::add_constant{
    .name = "add_constant",
    .maths = of_one_and_constant([](float x, float c) { return x + c; }),
    .text = "{} + {}",
    .step = "shift"};

}  // namespace fuseline
