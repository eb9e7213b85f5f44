// The fp64 reference: a graph computed operator by operator in plain loops. Everything else is
// judged against it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/graph.h"

namespace fuseline {

// Row-major values of tensors by name.
using NamedTensors = std::map<std::string, std::vector<double>>;

// The values of a graph's tensors, each rows × cols doubles, row-major; empty until given or
// computed.
class TensorValues {
 public:
  explicit TensorValues(const Graph& graph);
  [[nodiscard]] bool has(TensorId id) const;
  [[nodiscard]] const std::vector<double>& at(TensorId id) const;  // asserts has(id)
  [[nodiscard]] const std::vector<double>& at(const std::string& name) const;
  // For writing; zeros of the tensor's size the first time.
  std::vector<double>& writable(TensorId id);

 private:
  const Graph* graph_;
  std::vector<std::vector<double>> values_;
};

// Computes every operator in topological order and returns all tensors. `inputs` holds each tensor
// that no operator produces, by name, and the caches ([B·S, Hkv·d], of which the first S-T rows of
// each sequence count). The graph must outlive the result. InputError when one is missing, has the
// wrong size, or holds a NaN or infinity (tensor and index named); entries of other names are
// ignored.
TensorValues run_reference(const Graph& graph, const NamedTensors& inputs);

// Values for all inputs of the graph, the same for the same tensor name, shape and seed in every
// graph: normal, weights scaled by 1/sqrt(K), norm weights about 1, cos and sin of RoPE angles, one
// outlier column in twenty (20 times larger) in the inputs. Deterministic on every platform.
NamedTensors random_inputs(const Graph& graph, std::uint64_t seed);

// ‖got - want‖₂ / ‖want‖₂.
double relative_l2(const std::vector<double>& got, const std::vector<double>& want);

// Empty when `got` agrees with `want` within `tolerance` in relative L2; otherwise what is wrong.
// Sizes that differ, NaN or infinity, and tensors of more than one element that are all equal never
// agree.
std::string disagreement(const std::vector<double>& got, const std::vector<double>& want,
                         double tolerance);

}  // namespace fuseline
