// GELU in its exact form.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::gelu_erf{
    .name = "gelu_erf",
    .maths = of_one([](float x) { return 0.5F * x * (1.0F + std::erf(0.70710678F * x)); }),
    .device = R"(template <class A>
FUSELINE_DEVICE A gelu_erf(const A& a) {
  return map_1(a, [](float x) { return 0.5F * x * (1.0F + erff(0.70710678F * x)); });
}
)",
    .exponential = true,
    .instructions = 24.5};

}  // namespace fuseline
