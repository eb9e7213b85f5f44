// The derivative of relu: 1 where a value is positive, else 0.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::step{
    .name = "step",
    .maths = of_one([](float x) { return x > 0.0F ? 1.0F : 0.0F; }),
    .device = R"(template <class A>
FUSELINE_DEVICE A step(const A& a) {
  return map_1(a, [](float x) { return x > 0.0F ? 1.0F : 0.0F; });
}
)"};

}  // namespace fuseline
