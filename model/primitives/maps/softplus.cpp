// log(1 + exp(x)), of large values without overflow. On the device the logarithm of nearly one is
// the first two terms of its series, of which the error is a third of the square: below 4e-5.
#include <algorithm>
#include <cmath>

#include "model/primitives/all_maps.h"
#include "model/primitives/map_elements.h"

namespace fuseline {

constinit const MapFunction maps::softplus{
    .name = "softplus",
    .maths =
        of_one([](float x) { return std::max(x, 0.0F) + std::log1p(std::exp(-std::fabs(x))); }),
    .device = R"(template <class A>
FUSELINE_DEVICE A softplus(const A& a) {
  return map_1(a, [](float x) {
    const float e = fast_exp(-fabsf(x));
    const float rest = e < 0.01F ? e * (1.0F - 0.5F * e) : __logf(1.0F + e);
    return fmaxf(x, 0.0F) + rest;
  });
}
)",
    .exponential = true,
    .instructions = 11};

}  // namespace fuseline
