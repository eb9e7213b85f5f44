// One operator or a graph of them in fp64, for tests of the reference.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/reference.h"

namespace fuseline::test::reference {

using Vector = std::vector<double>;
inline constexpr double kExact = 1e-13;  // fp64 sums of at most a few hundred terms

inline TensorId add(Graph& g, const std::string& name, std::int64_t rows, std::int64_t cols,
                    Role role = Role::input) {
  return g.add_tensor(
      {.name = name, .role = role, .dtype = Dtype::fp32, .rows = rows, .cols = cols});
}

// One operator over whole tensors; the result is named "y".
inline Vector compute(OpKind kind, const std::vector<Tensor>& shapes, const NamedTensors& inputs,
                      std::int64_t rows, std::int64_t cols, const Attributes& attributes = {}) {
  Graph g;
  Op op{.name = "op", .kind = kind, .attributes = attributes};
  for (const Tensor& t : shapes) op.reads.push_back(g.whole(g.add_tensor(t)));
  op.writes.push_back(g.whole(add(g, "y", rows, cols, Role::output)));
  g.add_op(op);
  return run_reference(g, inputs).at("y");
}

inline Tensor shape(const std::string& name, std::int64_t rows, std::int64_t cols) {
  return {.name = name, .role = Role::input, .rows = rows, .cols = cols};
}

inline Vector random_vector(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<double> normal;
  Vector v(static_cast<std::size_t>(count));
  for (double& e : v) e = normal(random);
  return v;
}

inline double at(const Vector& v, std::int64_t cols, std::int64_t row, std::int64_t col) {
  return v.at(static_cast<std::size_t>(row * cols + col));
}

inline double norm(const Vector& v) {
  double sum = 0;
  for (const double e : v) sum += e * e;
  return std::sqrt(sum);
}

}  // namespace fuseline::test::reference
