// log(1 + exp(x)), of large values without overflow.
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
  return map_1(a, [](float x) { return fmaxf(x, 0.0F) + log1pf(fast_exp(-fabsf(x))); });
}
)"};

}  // namespace fuseline
