#include "model/operators/support/facts.h"

#include "base/error.h"

namespace fuseline {

Implementation by_layout(const Graph& graph, const Op& op) {
  const bool gaps = std::ranges::any_of(op.reads, [&](const Operand& o) {
    return o.rows > 1 && o.cols < graph.tensor(o.tensor).cols;
  });
  return gaps ? Implementation::strided : Implementation::vectorized;
}

Implementation never_alone(const Graph&, const Op& op) {
  FUSELINE_ASSERT(false, op.name + " is a mainloop, not a loop over elements");
}

}  // namespace fuseline
