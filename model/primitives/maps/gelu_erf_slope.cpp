// The derivative of gelu_erf: the normal distribution and x times its density.
// On the device as gelu_erf.
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
    .device = R"(FUSELINE_HD float gelu_erf_slope_tail(float x) {
  const float t = fast_reciprocal(1.0F + 0.3275911F * fabsf(x));
  const float sum = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F +
                    t * (-1.453152027F + t * 1.061405429F))));
  const float rest = sum * fast_exp(-x * x);
  return x < 0.0F ? rest : 2.0F - rest;
}
template <class A>
FUSELINE_DEVICE A gelu_erf_slope(const A& a) {
  return map_1(a, [](float x) {
    return 0.5F * gelu_erf_slope_tail(0.70710678F * x) +
           x * 0.39894228F * fast_exp(-0.5F * x * x);
  });
}
)"};

}  // namespace fuseline
