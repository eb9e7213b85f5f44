// A value, or a constant where the value is smaller.
#include <algorithm>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::at_least{
    .name = "at_least",
    .maths = of_one_and_constant([](float x, float c) { return std::max(x, c); }),
    .text = "max({}, {})",
    .device = R"(template <class A>
FUSELINE_DEVICE A at_least(const A& a, float c) {
  return map_1(a, [c](float x) { return x < c ? c : x; });
}
)"};

}  // namespace fuseline
