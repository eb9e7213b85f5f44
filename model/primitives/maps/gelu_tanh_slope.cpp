// The derivative of gelu_tanh.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const MapFunction maps::gelu_tanh_slope{
    .name = "gelu_tanh_slope",
    .maths = of_one([](float x) { return gelu_tanh_slope_of(x); }),
    .text = "gelu_slope({})",
    .exponential = true,
    .instructions = 11,
    .holds = &maps::gelu_tanh};

}  // namespace fuseline
