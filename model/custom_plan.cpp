// Policy `custom`: a person chooses the edges to keep on chip.
#include <algorithm>
#include <utility>

#include "model/assemble.h"
#include "model/backward.h"
#include "model/error.h"
#include "model/implementation.h"
#include "model/policy.h"
#include "model/rewrites/decompose_norm.h"
#include "model/rewrites/decompose_rope.h"
#include "model/rewrites/decompose_swiglu.h"
#include "model/rewrites/inline_pointwise.h"
#include "model/rewrites/interleave_pairs.h"
#include "model/rewrites/merge_rope.h"
#include "model/rewrites/rotate_boundary.h"
#include "model/rewrites/split_norm.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

std::vector<Rewrite> all_rewrites() {
  return {decompose_norm(),     decompose_rope(),    decompose_swiglu(),  merge_rope(),
          split_norm(),         rotate_statistics(), rotate_entry_norm(), interleave_heads(),
          interleave_gate_up(), inline_pointwise()};
}

Rewrite find_rewrite(const std::string& name) {
  std::string allowed;
  for (const Rewrite& r : all_rewrites()) {
    if (r.name == name) return r;
    allowed += (allowed.empty() ? "" : ", ") + std::string(r.name);
  }
  throw InputError({.field = "custom.rewrites",
                    .value = name,
                    .message = "unknown rewrite",
                    .allowed = allowed,
                    .nearest = nearest_name(name, rewrite_names())});
}

OpId find_operator(const Graph& graph, const std::string& name) {
  if (const auto id = graph.find_op(name)) return *id;
  std::vector<std::string> names;
  for (const Op& op : graph.ops()) names.push_back(op.name);
  throw InputError({.field = "custom.on_chip",
                    .value = name,
                    .message = "no such operator in the block",
                    .nearest = nearest_name(name, names)});
}

[[noreturn]] void refuse(const OnChipEdge& edge, const std::string& reason) {
  throw InputError({.field = "custom.on_chip",
                    .value = edge.from + " -> " + edge.to,
                    .message = "cannot stay on chip: " + reason});
}

std::string not_chosen(const Graph&, const std::vector<OpId>&, const std::vector<OpId>&,
                       const Edge&) {
  return "the edge was not chosen";
}

// Merges both groups without asking: single steps may be illegal where the whole is not.
void unite(const Graph& graph, Groups& groups, OpId from, OpId to) {
  const std::size_t a = group_of(groups, from);
  const std::size_t b = group_of(groups, to);
  if (a == b) return;
  std::vector<OpId> both;
  for (const OpId id : topological_order(graph))
    if (const std::size_t g = group_of(groups, id); g == a || g == b) both.push_back(id);
  groups[a] = std::move(both);
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
}

}  // namespace

std::vector<std::string> rewrite_names() {
  std::vector<std::string> names;
  for (const Rewrite& r : all_rewrites()) names.emplace_back(r.name);
  return names;
}

Plan make_custom_plan(const Graph& graph, const std::vector<std::string>& rewrites,
                      const std::vector<OnChipEdge>& on_chip) {
  refuse_backward(graph, "policy custom");
  Block block{graph, {}};
  for (const std::string& name : rewrites) {
    const Rewrite rewrite = find_rewrite(name);
    if (!rewrite.applies(block.graph))
      throw InputError({.field = "custom.rewrites",
                        .value = name,
                        .message = "does not apply to this block after the rewrites before it"});
    rewrite.apply(block);
  }
  const std::vector<Edge> all = edges(block.graph);
  Groups groups = fuse_attention(block.graph, one_each(block.graph));
  for (const OnChipEdge& choice : on_chip) {
    const OpId from = find_operator(block.graph, choice.from);
    const OpId to = find_operator(block.graph, choice.to);
    const bool known =
        std::ranges::any_of(all, [&](const Edge& e) { return e.from == from && e.to == to; });
    if (!known) refuse(choice, choice.to + " does not read what " + choice.from + " writes");
    unite(block.graph, groups, from, to);
  }
  for (const OnChipEdge& choice : on_chip) {
    const std::size_t g = group_of(groups, find_operator(block.graph, choice.from));
    const std::string reason = why_no_program(block.graph, groups[g]);
    if (!reason.empty()) refuse(choice, reason);
    const std::string cycle = why_cycle(block.graph, groups, g);
    if (!cycle.empty()) refuse(choice, cycle);
  }
  PlanParts parts;
  parts.policy = "custom";
  parts.graph = std::move(block.graph);
  parts.groups = std::move(groups);
  parts.implement = hand_written_implementation;
  parts.rule = not_chosen;
  parts.rewrites = rewrites;
  parts.preparation = std::move(block.preparation);
  return assemble(std::move(parts));
}

}  // namespace fuseline
