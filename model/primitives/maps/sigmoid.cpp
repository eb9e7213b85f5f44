// 1 / (1 + exp(-x)).
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline {

constinit const MapFunction maps::sigmoid{.name = "sigmoid",
                                          .maths = of_one([](float x) { return sigmoid_of(x); }),
                                          .exponential = true,
                                          .instructions = 4};

}  // namespace fuseline
