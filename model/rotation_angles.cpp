#include "model/rotation_angles.h"

#include <algorithm>
#include <cmath>

#include "model/operators/attributes.h"

namespace fuseline {

RotationAngles::RotationAngles(const Graph& graph, TensorId table)
    : pairs_(std::max<std::int64_t>(1, graph.tensor(table).cols / 2)) {
  const std::vector<OpId> readers = graph.consumers(table);
  adjacent_ = std::any_of(readers.begin(), readers.end(), [&](OpId id) {
    const auto* pairs = graph.op(id).attributes.get<Pairs>();
    return pairs != nullptr && pairs->interleaved;
  });
}

double RotationAngles::at(std::int64_t row, std::int64_t col) const {
  const std::int64_t pair = adjacent_ ? col / 2 : col % pairs_;
  const double exponent = static_cast<double>(pair) / static_cast<double>(pairs_);
  return static_cast<double>(row + 1) * std::pow(10000.0, -exponent);
}

}  // namespace fuseline
