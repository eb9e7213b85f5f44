// A map from outside the layers, in one file: x · sigmoid(1.702 x). Nothing else in the project
// names it.
#pragma once

#include "model/primitives/map_elements.h"
#include "model/primitives/scalar_maths.h"

namespace fuseline::extension {

inline constexpr MapFunction quick_gelu{
    .name = "quick_gelu",
    .maths = of_one([](float x) { return x * sigmoid_of(1.702F * x); }),
    // For both kinds of kernels: each has its own map_1.
    .device = R"(template <class A>
FUSELINE_DEVICE A quick_gelu(const A& a) {
  return map_1(a, [](float x) { return x * sigmoid_of(1.702F * x); });
}
)"};

}  // namespace fuseline::extension
