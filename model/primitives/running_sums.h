// Reductions of numbers in a fixed order: what the reductions of reductions/ are made with.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fuseline {

// Sixteen running results, each of every sixteenth number, then these joined in pairs.
template <class Step, class Join>
float running(const float* values, std::int64_t count, float start, Step step, Join join) {
  constexpr std::int64_t kLanes = 16;
  std::array<float, kLanes> sums;
  sums.fill(start);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l)
      sums[static_cast<std::size_t>(l)] = step(sums[static_cast<std::size_t>(l)], values[i + l]);
  for (std::int64_t l = 0; i + l < count; ++l)
    sums[static_cast<std::size_t>(l)] = step(sums[static_cast<std::size_t>(l)], values[i + l]);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) sums[l] = join(sums[l], sums[l + half]);
  return sums[0];
}

// The sum of term(value).
template <class Term>
float running_sum(const float* values, std::int64_t count, Term term) {
  return running(
      values, count, 0.0F, [term](float s, float v) { return s + term(v); },
      [](float a, float b) { return a + b; });
}

inline float added(float a, float b) { return a + b; }
inline float larger(float a, float b) { return a > b ? a : b; }

}  // namespace fuseline
