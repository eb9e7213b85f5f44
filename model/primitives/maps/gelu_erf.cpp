// GELU in its exact form.
// On the device 1 + erf(x) is Abramowitz and Stegun's 7.1.26 (absolute error 1.5e-7; of the tail,
// which is computed directly, far less): the library's function takes more registers than an
// epilogue has.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::gelu_erf{
    .name = "gelu_erf",
    .maths = of_one([](float x) { return 0.5F * x * (1.0F + std::erf(0.70710678F * x)); }),
    .device = R"(FUSELINE_HD float gelu_erf_tail(float x) {
  const float t = fast_reciprocal(1.0F + 0.3275911F * fabsf(x));
  const float sum = t * (0.254829592F + t * (-0.284496736F + t * (1.421413741F +
                    t * (-1.453152027F + t * 1.061405429F))));
  const float rest = sum * fast_exp(-x * x);
  return x < 0.0F ? rest : 2.0F - rest;
}
template <class A>
FUSELINE_DEVICE A gelu_erf(const A& a) {
  return map_1(a, [](float x) { return 0.5F * x * gelu_erf_tail(0.70710678F * x); });
}
)"};

}  // namespace fuseline
