#include "model/custom_fusion.h"

#include <algorithm>

#include "base/error.h"
#include "model/blocks/block.h"

namespace fuseline {

namespace {

constexpr const char* kArrow = " -> ";

bool is_legal(const Graph& graph, const CustomFusion& custom) {
  try {
    static_cast<void>(make_custom_plan(graph, custom.rewrites, custom.on_chip));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Each pair of operators once, in the order of the plan's notes.
std::vector<OnChipEdge> fused_edges(const Plan& plan) {
  std::vector<OnChipEdge> found;
  for (const FusionNote& note : plan.notes) {
    if (!note.fused) continue;
    const OnChipEdge edge{plan.graph.op(note.edge.from).name, plan.graph.op(note.edge.to).name};
    if (std::ranges::find(found, edge) == found.end()) found.push_back(edge);
  }
  return found;
}

}  // namespace

bool operator==(const OnChipEdge& a, const OnChipEdge& b) {
  return a.from == b.from && a.to == b.to;
}

bool operator==(const CustomFusion& a, const CustomFusion& b) {
  return a.rewrites == b.rewrites && a.on_chip == b.on_chip;
}

std::string edge_text(const OnChipEdge& edge) { return edge.from + kArrow + edge.to; }

OnChipEdge parse_edge(const std::string& text, const std::string& field) {
  const std::size_t arrow = text.find(kArrow);
  const std::size_t after = arrow + std::string(kArrow).size();
  if (arrow == std::string::npos || arrow == 0 || after >= text.size() ||
      text.find(kArrow, after) != std::string::npos) {
    throw InputError({.field = field,
                      .value = text,
                      .message = "is not an edge",
                      .allowed = "two operators of the block, as in \"gate_up -> swiglu\""});
  }
  return {text.substr(0, arrow), text.substr(after)};
}

Plan make_plan(const std::string& policy, const ModelConfig& config, const Workload& workload,
               const CustomFusion& custom, const Target& target) {
  if (policy != kCustomPolicy) return make_plan(policy, config, workload, target);
  return make_custom_plan(build_block(config, workload), custom.rewrites, custom.on_chip, target);
}

Plan make_end_plan(const std::string& policy, const Graph& end, const Target& target) {
  Plan plan = make_plan(policy == kCustomPolicy ? "per-operator" : policy, end, target);
  plan.policy = policy;
  return plan;
}

CustomFusion custom_like(const Plan& plan, const Graph& graph) {
  CustomFusion custom;
  const std::vector<std::string> known = rewrite_names();
  for (const std::string& name : plan.rewrites) {
    if (std::ranges::find(known, name) == known.end()) continue;
    custom.rewrites.push_back(name);
    if (!is_legal(graph, custom)) custom.rewrites.pop_back();
  }
  const std::vector<OnChipEdge> always =
      fused_edges(make_custom_plan(graph, custom.rewrites, {}));  // inside attention
  for (const OnChipEdge& edge : fused_edges(plan))
    if (std::ranges::find(always, edge) == always.end()) custom.on_chip.push_back(edge);
  if (is_legal(graph, custom)) return custom;
  // Not all at once: as many as go, in order.
  std::vector<OnChipEdge> wanted;
  std::swap(wanted, custom.on_chip);
  for (const OnChipEdge& edge : wanted) {
    custom.on_chip.push_back(edge);
    if (!is_legal(graph, custom)) custom.on_chip.pop_back();
  }
  return custom;
}

}  // namespace fuseline
