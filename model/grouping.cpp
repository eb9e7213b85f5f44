#include "model/grouping.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/lower_attention.h"
#include "model/operators/operator_table.h"
#include "model/why_not.h"
#include "model/wiring.h"

namespace fuseline {

namespace {

// Group b joins group a; the operators stay in dependency order.
void merge(const Wiring& wiring, Groups& groups, std::size_t a, std::size_t b) {
  std::vector<OpId> both = groups[a];
  both.insert(both.end(), groups[b].begin(), groups[b].end());
  std::vector<OpId> ordered;
  for (const OpId id : wiring.order)
    if (std::find(both.begin(), both.end(), id) != both.end()) ordered.push_back(id);
  groups[a] = std::move(ordered);
  groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(b));
}

}  // namespace

Groups one_each(const Graph& graph) {
  Groups groups;
  for (const OpId id : topological_order(graph)) groups.push_back({id});
  return groups;
}

Groups fuse_attention(const Graph& graph, Groups groups) {
  const Wiring wiring(graph);
  for (const Edge& e : wiring.edges) {
    const Op& from = graph.op(e.from);
    const Op& to = graph.op(e.to);
    const bool inside = from.kind->attention && to.kind->attention && from.pass == to.pass;
    const std::size_t a = group_of(groups, e.from);
    const std::size_t b = group_of(groups, e.to);
    if (inside && a != b) merge(wiring, groups, a, b);
  }
  return groups;
}

Groups grow(const Graph& graph, Groups groups, const FusionRule& rule, const Target& target) {
  const Wiring wiring(graph);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge& e : wiring.edges) {
      const std::size_t a = group_of(groups, e.from);
      const std::size_t b = group_of(groups, e.to);
      if (a == b || !rule(graph, groups[a], groups[b], e).empty()) continue;
      if (!why_not_merge(graph, wiring, groups, a, b, target).empty()) continue;
      merge(wiring, groups, a, b);
      changed = true;
    }
  }
  return groups;
}

Groups join_siblings(const Graph& graph, Groups groups, const SiblingRule& rule,
                     const Target& target) {
  const Wiring wiring(graph);
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = a + 1; b < groups.size();) {
      if (rule(graph, groups[a], groups[b]) &&
          why_not_merge(graph, wiring, groups, a, b, target).empty())
        merge(wiring, groups, a, b);
      else
        ++b;
    }
  }
  return groups;
}

namespace {

class DepthFirst {
 public:
  DepthFirst(const Graph& graph, const Groups& groups)
      : groups_(groups), needs_(groups.size()), done_(groups.size()) {
    std::vector<std::size_t> group_of_op(graph.ops().size());
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (const OpId id : groups[g]) group_of_op[static_cast<std::size_t>(id.index)] = g;
    const Wiring wiring(graph);
    for (const OpId from : wiring.order)
      for (const Edge& e : wiring.edges)
        if (e.from == from)
          needs_[group_of_op[static_cast<std::size_t>(e.to.index)]].push_back(
              group_of_op[static_cast<std::size_t>(from.index)]);
    for (const OpId id : wiring.order) visit(group_of_op[static_cast<std::size_t>(id.index)]);
  }
  Groups take() { return std::move(ordered_); }

 private:
  void visit(std::size_t group) {
    if (done_[group]) return;
    done_[group] = true;
    for (const std::size_t needed : needs_[group]) visit(needed);
    ordered_.push_back(groups_[group]);
  }

  const Groups& groups_;
  std::vector<std::vector<std::size_t>> needs_;
  std::vector<bool> done_;
  Groups ordered_;
};

}  // namespace

Groups depth_first(const Graph& graph, const Groups& groups) {
  return DepthFirst(graph, groups).take();
}

std::size_t group_of(const Groups& groups, OpId op) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (std::find(groups[g].begin(), groups[g].end(), op) != groups[g].end()) return g;
  FUSELINE_ASSERT(false, "an operator is in no group");
}

bool any_op(const Graph& graph, const std::vector<OpId>& group,
            const std::function<bool(const Op&)>& predicate) {
  return std::any_of(group.begin(), group.end(), [&](OpId id) { return predicate(graph.op(id)); });
}

bool all_of_kind(const Graph& graph, const std::vector<OpId>& group, OpKind kind) {
  return std::all_of(group.begin(), group.end(),
                     [&](OpId id) { return graph.op(id).kind == kind; });
}

bool has_mainloop(const Graph& graph, const std::vector<OpId>& group) {
  return any_op(graph, group,
                [](const Op& op) { return op.kind->locality == Locality::contraction; });
}

bool has_gemm(const Graph& graph, const std::vector<OpId>& group) {
  return any_op(graph, group, [](const Op& op) { return is_gemm(op); });
}

bool has_attention(const Graph& graph, const std::vector<OpId>& group) {
  return any_op(graph, group, [](const Op& op) { return op.kind->op_class == OpClass::attention; });
}

bool has_scan(const Graph& graph, const std::vector<OpId>& group) {
  return any_op(graph, group, [](const Op& op) { return op.kind->op_class == OpClass::scan; });
}

}  // namespace fuseline
