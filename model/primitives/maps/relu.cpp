// The positive part.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::relu{.name = "relu",
                                       .maths = of_one([](float x) { return std::max(x, 0.0F); }),
                                       .device = R"(template <class A>
FUSELINE_DEVICE A relu(const A& a) {
  return map_1(a, [](float x) { return fmaxf(x, 0.0F); });
}
)"};

}  // namespace fuseline
