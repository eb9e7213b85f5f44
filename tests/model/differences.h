// Numerical derivatives, for checking gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fuseline::test {

constexpr double smallest_step = 1.25e-4;

struct Derivative {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();  // estimate of |value - f'(0)|
};

// f'(0) from five points -2h..2h, error O(h⁴), at falling steps. Truncation falls with h and
// rounding grows, so the neighbouring steps that agree best bracket the optimum; their difference
// estimates the error.
template <class F>
Derivative derivative(F f) {
  const auto at_step = [&](double h) {
    return (8.0 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12.0 * h);
  };
  Derivative best;
  double previous = at_step(8e-3);
  for (const double h : {2e-3, 5e-4, smallest_step}) {
    const double next = at_step(h);
    if (std::abs(next - previous) < best.error) best = {next, std::abs(next - previous)};
    previous = next;
  }
  return best;
}

}  // namespace fuseline::test
