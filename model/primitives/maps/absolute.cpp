// The magnitude of a number.
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::absolute{.name = "absolute",
                                           .maths = of_one([](float x) { return std::fabs(x); }),
                                           .text = "|{}|",
                                           .device = R"(template <class A>
FUSELINE_DEVICE A absolute(const A& a) {
  return map_1(a, [](float x) { return x < 0.0F ? -x : x; });
}
)"};

}  // namespace fuseline
