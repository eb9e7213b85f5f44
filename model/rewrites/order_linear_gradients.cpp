#include "model/rewrites/order_linear_gradients.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/operators/all_operators.h"
#include "model/operators/operator_table.h"

namespace fuseline {

namespace in_order_linear_gradients {
namespace {

struct Linear {
  const Op* input = nullptr;
  const Op* weight = nullptr;
  const Op* bias = nullptr;
};

// The gradients of the linear layer whose bias gradient this is. Layers whose results are added
// have one gradient in common, and reverse mode appends the gradients of one layer behind those of
// the other: of these, the first that no other layer has.
std::optional<Linear> linear_of(const Graph& graph, const Op& bias, std::set<std::string>& taken) {
  if (bias.kind != operators::column_sum) return std::nullopt;
  Linear found{nullptr, nullptr, &bias};
  for (const OpId id : graph.consumers(bias.reads[0].tensor)) {
    const Op& op = graph.op(id);
    if (!is_gemm(op) || op.reads[0].tensor != bias.reads[0].tensor || taken.contains(op.name))
      continue;
    const Op*& place = op.attributes.as<GemmLayout>().a_is_km ? found.weight : found.input;
    if (place == nullptr) place = &op;
  }
  if (found.weight == nullptr || found.input == nullptr) return std::nullopt;
  taken.insert({found.weight->name, found.input->name});
  return found;
}

std::vector<Linear> linears(const Graph& graph) {
  std::vector<Linear> all;
  std::set<std::string> taken;
  for (const Op& op : graph.ops())
    if (const auto linear = linear_of(graph, op, taken)) all.push_back(*linear);
  return all;
}

void apply(Block& block) {
  const Graph from = block.graph;
  const std::vector<Linear> all = linears(from);
  block.graph = replace_ops(from, [&](const Op& op, Graph& to) {
    for (const Linear& l : all) {
      if (op.name == l.weight->name) {
        to.add_op(*l.input);
        to.add_op(*l.weight);
        to.add_op(*l.bias);
        return true;
      }
      if (op.name == l.input->name || op.name == l.bias->name) return true;
    }
    return false;
  });
}

}  // namespace
}  // namespace in_order_linear_gradients

Rewrite order_linear_gradients() {
  return {"order_linear_gradients", "gradients of a linear layer: input, weight, bias",
          [](const Graph& graph) { return !in_order_linear_gradients::linears(graph).empty(); },
          in_order_linear_gradients::apply};
}

}  // namespace fuseline
