// The derivative of gelu_erf: the normal distribution and x times its density.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::gelu_erf_slope{
    .name = "gelu_erf_slope",
    .maths = of_one([](float x) {
      return 0.5F * (1.0F + std::erf(0.70710678F * x)) + x * 0.39894228F * std::exp(-0.5F * x * x);
    }),
    .device = R"(template <class A>
FUSELINE_DEVICE A gelu_erf_slope(const A& a) {
  return map_1(a, [](float x) {
    return 0.5F * (1.0F + erf_of(0.70710678F * x)) + x * 0.39894228F * fast_exp(-0.5F * x * x);
  });
}
)",
    .exponential = true,
    .instructions = 24};

}  // namespace fuseline
