// Functions of a number that several maps and pair maps share, in fp32.
#pragma once

#include <cmath>

namespace fuseline {

inline float sigmoid_of(float x) { return 1.0F / (1.0F + std::exp(-x)); }

inline constexpr float kGeluScale = 0.7978845608F;  // sqrt(2/π)
inline float gelu_tanh_of(float x) {
  return 0.5F * x * (1.0F + std::tanh(kGeluScale * (x + 0.044715F * x * x * x)));
}
inline float gelu_tanh_slope_of(float x) {
  const float t = std::tanh(kGeluScale * (x + 0.044715F * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * kGeluScale * (1.0F + 0.134145F * x * x);
}

}  // namespace fuseline
