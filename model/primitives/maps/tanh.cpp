// The hyperbolic tangent.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::tanh{.name = "tanh",
                                       .maths = of_one([](float x) { return std::tanh(x); }),
                                       .device = R"(template <class A>
FUSELINE_DEVICE A tanh(const A& a) {
  return map_1(a, [](float x) { return tanh_of(x); });
}
)",
                                       .exponential = true,
                                       .instructions = 7};

}  // namespace fuseline
