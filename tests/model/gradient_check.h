// Checks a joint graph's gradients against central differences of L = sum of dy·y.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "model/backward.h"
#include "model/reference.h"
#include "tests/model/differences.h"

namespace fuseline::test {

// Normal values, one column in each operand 20 times larger; tables are cos and sin.
inline NamedTensors outlier_inputs(const Graph& joint, std::mt19937& random) {
  NamedTensors inputs = random_inputs(joint, random());
  for (auto& [name, values] : inputs) {
    const Tensor& t = joint.tensor(joint.find_tensor(name).value());
    if (t.role != Role::input || t.cols < 2) continue;
    std::normal_distribution<double> normal;
    const std::size_t cols = static_cast<std::size_t>(t.cols);
    const std::size_t outlier = random() % cols;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = (i % cols == outlier ? 20.0 : 1.0) * normal(random);
  }
  return inputs;
}

// L of the forward pass: the gradient seeds "dy" weigh the outputs. And the sum of its terms'
// magnitudes, which bounds its rounding.
struct Functional {
  double value = 0;
  double magnitude = 0;
};
inline Functional functional(const Graph& forward, const NamedTensors& inputs) {
  const TensorValues values = run_reference(forward, inputs);
  Functional L;
  for (const Tensor& t : forward.tensors()) {
    if (t.role != Role::output) continue;
    const std::vector<double>& y = values.at(t.name);
    const std::vector<double>& dy = inputs.at("d" + t.name);
    for (std::size_t i = 0; i < y.size(); ++i) {
      L.value += y[i] * dy[i];
      L.magnitude += std::abs(y[i] * dy[i]);
    }
  }
  return L;
}

// Empty when the gradient of tensor `name` is that of L: at up to `most` of its elements, and along
// one random direction through all of them. The tolerance at each is ten times the differences' own
// error estimate, plus what rounding of L (one unit in 2^52 of its terms) can do to them, plus
// 1e-10 of the tensor's largest gradient; an estimate above 1e-6 of that gradient is itself a
// failure, since it would prove little.
inline std::string wrong_gradient(const Graph& forward, const NamedTensors& inputs,
                                  const std::string& name, const std::vector<double>& gradient,
                                  std::mt19937& random, std::size_t most = 48) {
  NamedTensors moved = inputs;
  std::vector<double>& x = moved.at(name);
  const std::vector<double> start = x;
  if (gradient.size() != start.size()) return "d" + name + " has the wrong size";
  double largest = 0;
  for (const double g : gradient) largest = std::max(largest, std::abs(g));
  if (!(largest > 0) || !std::isfinite(largest)) return "d" + name + " is zero or not finite";

  const double rounding = std::ldexp(functional(forward, inputs).magnitude, -52) / smallest_step;
  std::ostringstream problem;
  const auto compare = [&](const std::string& what, double got, const Derivative& want,
                           double scale) {
    if (want.error > 1e-6 * scale)
      problem << what << ": the differences are uncertain by " << want.error << " of " << scale;
    else if (!(std::abs(got - want.value) <= 10 * want.error + rounding + 1e-10 * scale))
      problem << what << " is " << got << ", central differences give " << want.value;
    return problem.str().empty();
  };
  for (std::size_t n = 0; n < std::min(most, start.size()); ++n) {
    const std::size_t i = start.size() <= most ? n : random() % start.size();
    const Derivative want = derivative([&](double step) {
      x[i] = start[i] + step;
      const double L = functional(forward, moved).value;
      x[i] = start[i];
      return L;
    });
    if (!compare("d" + name + "[" + std::to_string(i) + "]", gradient[i], want, largest))
      return problem.str();
  }
  std::vector<double> direction(start.size());
  std::normal_distribution<double> normal;
  double along = 0;
  double scale = 0;
  const double unit = 1.0 / std::sqrt(static_cast<double>(start.size()));
  for (std::size_t i = 0; i < start.size(); ++i) {
    direction[i] = unit * normal(random);
    along += direction[i] * gradient[i];
    scale += std::abs(direction[i] * gradient[i]);
  }
  const Derivative want = derivative([&](double step) {
    for (std::size_t i = 0; i < start.size(); ++i) x[i] = start[i] + step * direction[i];
    const double L = functional(forward, moved).value;
    x = start;
    return L;
  });
  compare("d" + name + " along a direction", along, want, scale);
  return problem.str();
}

}  // namespace fuseline::test
