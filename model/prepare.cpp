#include "model/prepare.h"

#include <utility>

#include "base/error.h"

namespace fuseline {

namespace {

// Where element j of a group goes: the first half to even places, the second to odd ones.
std::int64_t place(std::int64_t j, std::int64_t group) {
  return j < group / 2 ? 2 * j : 2 * (j - group / 2) + 1;
}

// `back`: from the reordered to the original order.
void reorder(std::vector<double>& values, std::int64_t rows, std::int64_t cols,
             const Interleaving& how, bool back = false) {
  const std::int64_t length = how.columns ? cols : rows;
  FUSELINE_ASSERT(
      how.begin + how.count <= length && how.count % how.group == 0 && how.group % 2 == 0,
      how.tensor);
  const std::vector<double> before = values;
  for (std::int64_t i = 0; i < how.count; ++i) {
    std::int64_t from = how.begin + i;
    std::int64_t to = how.begin + i / how.group * how.group + place(i % how.group, how.group);
    if (back) std::swap(from, to);
    if (how.columns) {
      for (std::int64_t r = 0; r < rows; ++r)
        values[static_cast<std::size_t>(r * cols + to)] =
            before[static_cast<std::size_t>(r * cols + from)];
    } else {
      for (std::int64_t c = 0; c < cols; ++c)
        values[static_cast<std::size_t>(to * cols + c)] =
            before[static_cast<std::size_t>(from * cols + c)];
    }
  }
}

}  // namespace

NamedTensors prepare(const Preparation& preparation, const Graph& plan_graph,
                     const NamedTensors& original) {
  NamedTensors result = original;
  if (!preparation.graph.ops().empty()) {
    const TensorValues made = run_reference(preparation.graph, original);
    for (const Op& op : preparation.graph.ops())
      result[preparation.graph.tensor(op.writes[0].tensor).name] = made.at(op.writes[0].tensor);
  }
  for (const Interleaving& how : preparation.interleavings) {
    const auto id = plan_graph.find_tensor(how.tensor);
    FUSELINE_ASSERT(id && result.contains(how.tensor), how.tensor);
    const Tensor& t = plan_graph.tensor(*id);
    reorder(result.at(how.tensor), t.rows, t.cols, how);
  }
  return result;
}

NamedTensors restore(const Preparation& preparation, const Graph& plan_graph,
                     NamedTensors results) {
  for (const Interleaving& how : preparation.results) {
    const auto id = plan_graph.find_tensor(how.tensor);
    FUSELINE_ASSERT(id && results.contains(how.tensor), how.tensor);
    const Tensor& t = plan_graph.tensor(*id);
    reorder(results.at(how.tensor), t.rows, t.cols, how, true);
  }
  return results;
}

}  // namespace fuseline
