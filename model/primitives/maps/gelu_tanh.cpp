// GELU in its tanh form.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const MapFunction maps::gelu_tanh{
    .name = "gelu_tanh",
    .maths = of_one([](float x) { return gelu_tanh_of(x); }),
    .text = "gelu({})",
    .exponential = true,
    .instructions = 8};

}  // namespace fuseline
