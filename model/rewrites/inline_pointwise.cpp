#include "model/rewrites/inline_pointwise.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_inline_pointwise {
namespace {

constexpr std::size_t max_reads = 4;
constexpr const char* suffix = "_inlined";

// A bias is not among them: it stays in its GEMM's epilogue.
bool cheap(const Op& op) { return op.kind == operators::residual_add || op.kind == operators::add; }

bool generated(const Op& op) {
  const OpClass c = op.kind->op_class;
  return c == OpClass::pointwise || c == OpClass::norm || c == OpClass::reduction;
}

bool reads_whole(const Graph& graph, const Op& op, TensorId id) {
  return std::ranges::all_of(op.reads, [&](const Operand& o) {
    return o.tensor != id || o.cols == graph.tensor(id).cols;
  });
}

// The producer when it is a cheap operator whose whole result generated loops read, and nobody
// else.
std::optional<OpId> cheap_producer(const Graph& graph, TensorId id) {
  const std::vector<OpId> producers = graph.producers(id);
  if (graph.tensor(id).role != Role::activation || producers.size() != 1) return std::nullopt;
  const Op& op = graph.op(producers[0]);
  const std::vector<OpId> readers = graph.consumers(id);
  const bool loops = std::ranges::all_of(readers, [&](OpId r) {
    return generated(graph.op(r)) && reads_whole(graph, graph.op(r), id);
  });
  if (!cheap(op) || !loops) return std::nullopt;
  return producers[0];
}

std::size_t reads_of(const Graph& graph, const Op& op) {
  std::size_t count = 0;
  for (const Operand& o : op.reads) {
    const auto producer = cheap_producer(graph, o.tensor);
    count += producer ? reads_of(graph, graph.op(*producer)) : 1;
  }
  return count;
}

// Operators whose value more than one loop reads and that are worth repeating.
std::vector<OpId> candidates(const Graph& graph) {
  std::vector<OpId> found;
  for (std::size_t i = 0; i < graph.ops().size(); ++i) {
    const OpId id{static_cast<std::int32_t>(i)};
    const TensorId made = graph.op(id).writes[0].tensor;
    if (cheap_producer(graph, made) == id && graph.consumers(made).size() > 1 &&
        reads_of(graph, graph.op(id)) <= max_reads)
      found.push_back(id);
  }
  return found;
}

// A copy of the operator and of its cheap producers; returns the copy's result.
Operand repeat(const Graph& from, Graph& to, const Op& op, Pass pass) {
  Op copy = op;
  copy.pass = pass;
  std::string extra = suffix;
  for (int n = 2; to.find_op(op.name + extra); ++n) extra = suffix + std::to_string(n);
  copy.name += extra;
  copy.inlined = true;
  for (Operand& o : copy.reads) {
    const auto producer = cheap_producer(from, o.tensor);
    if (producer) o = repeat(from, to, from.op(*producer), pass);
  }
  Tensor result = from.tensor(op.writes[0].tensor);
  result.name += extra;
  const Operand made = to.whole(to.add_tensor(result));
  copy.writes = {made};
  to.add_op(std::move(copy));
  return made;
}

void apply(Block& block) {
  const Graph& from = block.graph;
  std::vector<std::pair<TensorId, std::string>> repeated;  // tensor, its first reader
  for (const OpId id : candidates(from)) {
    const TensorId made = from.op(id).writes[0].tensor;
    repeated.emplace_back(made, from.op(from.consumers(made).front()).name);
  }
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    Op rewired = op;
    bool changed = false;
    for (Operand& o : rewired.reads) {
      for (const auto& [tensor, first_reader] : repeated) {
        if (o.tensor != tensor || op.name == first_reader) continue;
        o = repeat(from, to, from.op(from.producers(tensor).front()), op.pass);
        changed = true;
      }
    }
    if (changed) to.add_op(std::move(rewired));
    return changed;
  });
}

}  // namespace
}  // namespace in_inline_pointwise

Rewrite inline_pointwise() {
  return {"inline_pointwise", "cheap element-wise values are computed again where they are needed",
          [](const Graph& graph) { return !in_inline_pointwise::candidates(graph).empty(); },
          in_inline_pointwise::apply};
}

}  // namespace fuseline
