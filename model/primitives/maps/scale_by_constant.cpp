// A value times a constant.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::scale_by_constant{
    .name = "scale_by_constant",
    .maths = of_one_and_constant([](float x, float c) { return x * c; }),
    .text = "{} * {}",
    .step = "scale"};

}  // namespace fuseline
