// Random inputs that depend on seed, name and shape only, so that a rewritten graph gets the same
// values for the tensors it keeps.
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <string_view>

#include "model/operators/operator_table.h"
#include "model/reference.h"
#include "model/rotation_angles.h"

namespace fuseline {

namespace {

constexpr std::int64_t kOutlierPeriod = 20;
constexpr double kOutlierScale = 20.0;

// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text) {
  std::uint64_t h = 14695981039346656037ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return h;
}

// Normal numbers by Box and Muller; the library's distribution differs between platforms.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  double operator()() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  std::uint64_t integer() { return engine_(); }

 private:
  // In (0, 1).
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  std::mt19937_64 engine_;
};

std::vector<double> values_of(const Graph& graph, TensorId id, std::uint64_t seed) {
  const Tensor& t = graph.tensor(id);
  Normal normal(seed ^ hash(t.name + ":" + std::to_string(t.rows) + "x" + std::to_string(t.cols)));
  const std::uint64_t vocabulary = static_cast<std::uint64_t>(index_range(graph, id));
  const bool norm_weight = t.role == Role::weight && t.rows == 1 && t.name.rfind("w_", 0) == 0;
  const RotationAngles angles(graph, id);
  const double weight_scale = 1.0 / std::sqrt(static_cast<double>(t.cols));

  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(t.rows * t.cols));
  for (std::int64_t row = 0; row < t.rows; ++row) {
    for (std::int64_t col = 0; col < t.cols; ++col) {
      if (vocabulary > 0) {
        values.push_back(static_cast<double>(normal.integer() % vocabulary));
      } else if (t.role == Role::table && t.cols > 1) {
        const double angle = angles.at(row, col);
        values.push_back(t.name.rfind("sin", 0) == 0 ? std::sin(angle) : std::cos(angle));
      } else if (norm_weight) {
        values.push_back(1.0 + 0.2 * normal());
      } else if (t.role == Role::weight) {
        values.push_back(t.rows == 1 ? 0.2 * normal() : weight_scale * normal());
      } else {
        const bool outlier = t.role == Role::input && col % kOutlierPeriod == kOutlierPeriod / 2;
        values.push_back((outlier ? kOutlierScale : 1.0) * normal());
      }
    }
  }
  if (is_negative(graph, id))
    for (double& value : values) value = -std::fabs(value);
  return values;
}

}  // namespace

NamedTensors random_inputs(const Graph& graph, std::uint64_t seed) {
  NamedTensors inputs;
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) {
    const TensorId id{static_cast<std::int32_t>(i)};
    const Tensor& t = graph.tensor(id);
    if (t.role != Role::cache && !graph.producers(id).empty()) continue;
    inputs[t.name] = values_of(graph, id, seed);
  }
  return inputs;
}

}  // namespace fuseline
