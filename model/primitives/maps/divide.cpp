// The quotient of two values.
#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::divide{.name = "divide",
                                         .maths = of_two([](float x, float z) { return x / z; }),
                                         .text = "{} / {}",
                                         .device = R"(template <class A, class B>
FUSELINE_DEVICE auto divide(const A& a, const B& b) {
  return map_2(a, b, [](float x, float z) { return x * fast_reciprocal(z); });
}
)",
                                         .instructions = 2};

}  // namespace fuseline
