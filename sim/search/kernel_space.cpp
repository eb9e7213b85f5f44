#include "sim/search/kernel_space.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "base/error.h"
#include "model/lower.h"
#include "model/operators/operator_table.h"
#include "model/policies/all_policies.h"
#include "model/policies/support/rules.h"
#include "model/program.h"
#include "model/why_not.h"

namespace fuseline {

namespace {

// With so few units every connected set is looked at. With more, a legal kernel is found when it
// grows out of a legal one, or over one step that is not.
constexpr std::size_t kFewUnits = 12;
constexpr std::size_t kLargestKernel = 16;  // units

const std::vector<SiblingRule>& sibling_rules() {
  static const std::vector<SiblingRule> rules = {policy::coda().siblings,
                                                 policy::per_operator().siblings};
  return rules;
}

bool side_by_side(const Graph& graph, const std::vector<OpId>& a, const std::vector<OpId>& b) {
  return std::ranges::any_of(sibling_rules(), [&](const SiblingRule& rule) {
    return rule(graph, a, b) || rule(graph, b, a);
  });
}

}  // namespace

const char* name_of(Allowed allowed) {
  switch (allowed) {
    case Allowed::own_kernels:
      return "own";
    case Allowed::with_chains:
      return "chains";
    case Allowed::any_kernels:
      return "any";
  }
  FUSELINE_ASSERT(false, "unknown kernels");
}

KernelSpace::KernelSpace(const RewrittenBlock& block, const Target& target,
                         const std::vector<Constraint>& constraints, Allowed allowed)
    : block_(&block), target_(target), allowed_(allowed) {
  const Graph& graph = block.graph;
  units_ = fuse_attention(graph, one_each(graph));
  if (const auto order = order_groups(graph, units_)) {
    Groups ordered;
    for (const std::size_t g : *order) ordered.push_back(std::move(units_[g]));
    units_ = std::move(ordered);
  }
  if (!searchable()) return;
  neighbours_.resize(units_.size());
  std::vector<std::size_t> unit_of(graph.ops().size());
  for (std::size_t u = 0; u < units_.size(); ++u) {
    for (const OpId id : units_[u]) {
      unit_of[static_cast<std::size_t>(id.index)] = u;
      if (is_contraction(graph.op(id))) contractions_.set(u);
      if (graph.op(id).pass == Pass::backward) backward_.set(u);
      if (graph.op(id).kind->op_class == OpClass::attention) attentions_.set(u);
    }
  }
  for (const Edge& e : edges(graph)) {
    const std::size_t a = unit_of[static_cast<std::size_t>(e.from.index)];
    const std::size_t b = unit_of[static_cast<std::size_t>(e.to.index)];
    if (a == b) continue;
    neighbours_[a].set(b);
    neighbours_[b].set(a);
  }
  for (const Constraint& c : constraints) {
    const auto a = graph.find_op(c.a), b = graph.find_op(c.b);
    if (!a || !b) continue;
    const UnitSet pair = only(unit_of[static_cast<std::size_t>(a->index)]) |
                         only(unit_of[static_cast<std::size_t>(b->index)]);
    (c.together ? together_ : apart_).push_back(pair);
  }
}

std::vector<OpId> KernelSpace::operators(const UnitSet& kernel) const {
  std::vector<OpId> ops;
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (kernel.test(u)) ops.insert(ops.end(), units_[u].begin(), units_[u].end());
  return ops;
}

bool KernelSpace::adjacent(const UnitSet& a, const UnitSet& b) const {
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (a.test(u) && (neighbours_[u] & b).any()) return true;
  return side_by_side(block_->graph, operators(a), operators(b));
}

bool KernelSpace::fulfils(const UnitSet& kernel) const {
  return std::ranges::none_of(together_,
                              [&](const UnitSet& pair) {
                                const UnitSet in = pair & kernel;
                                return in.any() && in != pair;
                              }) &&
         std::ranges::none_of(apart_, [&](const UnitSet& pair) { return (pair & kernel) == pair; });
}

bool KernelSpace::possible(const UnitSet& kernel) {
  if ((kernel & contractions_).count() > most_contractions()) return false;
  if (allowed_ != Allowed::any_kernels && (kernel & attentions_).any() && kernel.count() > 1)
    return false;
  const auto [at, first] = known_.try_emplace(kernel, false);
  if (!first) return at->second;
  // Operators in the graph's own order: what a merge in grouping.cpp gives.
  const std::vector<OpId> ops = operators(kernel);
  if (!why_no_program(block_->graph, ops, target_).empty()) return false;
  // why_no_program() is about operators; the program that they make must hold as well.
  for (const Program& program : lower_kernel(block_->graph, "kernel", ops))
    if (!check_program(block_->graph, program).empty()) return false;
  Groups rest = {ops};
  for (std::size_t u = 0; u < units_.size(); ++u)
    if (!kernel.test(u)) rest.push_back(units_[u]);
  return at->second = order_groups(block_->graph, rest).has_value();
}

KernelSpace::Kernels KernelSpace::kernels(std::size_t at_most) {
  struct Open {
    UnitSet set;
    bool possible;
  };
  Kernels out;
  std::unordered_set<UnitSet> seen;
  std::deque<Open> open;
  const auto add = [&](const UnitSet& set) {
    if (!seen.insert(set).second) return;
    const bool is_possible = possible(set);
    if (is_possible && fulfils(set)) out.sets.push_back(set);
    open.push_back({set, is_possible});
  };
  for (std::size_t u = 0; u < units_.size(); ++u) add(only(u));
  const bool few = units_.size() <= kFewUnits;
  while (!open.empty()) {
    const Open now = open.front();
    open.pop_front();
    if (now.set.count() >= kLargestKernel) continue;
    if (out.sets.size() >= at_most || seen.size() > 20 * at_most) {
      out.all = false;
      break;
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (now.set.test(u)) continue;
      const UnitSet next = now.set | only(u);
      if ((next & contractions_).count() > most_contractions()) continue;
      if ((next & backward_).any() && (next & ~backward_).any()) continue;
      if (seen.contains(next)) continue;
      const bool edge = (neighbours_[u] & now.set).any();
      if (!edge && !(now.possible && adjacent(now.set, only(u)))) continue;
      if (!few && !now.possible && !possible(next)) continue;
      add(next);
    }
  }
  return out;
}

Grouping KernelSpace::grouping_of(const std::vector<UnitSet>& kernels) const {
  Grouping grouping(units_.size(), 0);
  std::uint8_t number = 0;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const auto in = std::ranges::find_if(kernels, [&](const UnitSet& k) { return k.test(u); });
    FUSELINE_ASSERT(in != kernels.end(), "a unit is in no kernel");
    std::size_t first = 0;
    while (!in->test(first)) ++first;
    grouping[u] = first == u ? number++ : grouping[first];
  }
  return grouping;
}

std::vector<UnitSet> KernelSpace::kernels_of(const Grouping& grouping) const {
  std::vector<UnitSet> kernels;
  for (std::size_t u = 0; u < grouping.size(); ++u) {
    if (grouping[u] == kernels.size()) kernels.emplace_back();
    kernels[grouping[u]].set(u);
  }
  return kernels;
}

std::optional<Grouping> KernelSpace::grouping_of(const Groups& groups) const {
  std::vector<UnitSet> kernels;
  UnitSet covered;
  for (const std::vector<OpId>& group : groups) {
    UnitSet kernel;
    std::size_t count = 0;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (std::ranges::find(group, units_[u].front()) == group.end()) continue;
      kernel.set(u);
      count += units_[u].size();
    }
    if (count != group.size()) return std::nullopt;
    covered |= kernel;
    kernels.push_back(kernel);
  }
  if (covered.count() != units_.size()) return std::nullopt;
  return grouping_of(kernels);
}

bool KernelSpace::legal(const Grouping& grouping) {
  return std::ranges::all_of(kernels_of(grouping), [&](const UnitSet& k) { return legal(k); }) &&
         order_groups(block_->graph, groups(grouping)).has_value();
}

Groups KernelSpace::groups(const Grouping& grouping) const {
  Groups all;
  for (const UnitSet& kernel : kernels_of(grouping)) all.push_back(operators(kernel));
  return all;
}

std::optional<Grouping> KernelSpace::least_fused() {
  std::vector<UnitSet> kernels;
  for (std::size_t u = 0; u < units_.size(); ++u) kernels.push_back(only(u));
  if (!together_.empty()) {
    // The smallest kernels that hold the pairs.
    std::vector<UnitSet> all = this->kernels(2000).sets;
    std::ranges::stable_sort(all, {}, [](const UnitSet& k) { return k.count(); });
    for (const UnitSet& pair : together_) {
      const auto holds = std::ranges::find_if(all, [&](const UnitSet& kernel) {
        return (kernel & pair) == pair && std::ranges::all_of(kernels, [&](const UnitSet& other) {
                 const UnitSet both = other & kernel;
                 return both.none() || both == other;
               });
      });
      if (holds == all.end()) return std::nullopt;
      std::erase_if(kernels, [&](const UnitSet& other) { return (other & *holds).any(); });
      kernels.push_back(*holds);
    }
  }
  Grouping grouping = grouping_of(kernels);
  if (!legal(grouping)) return std::nullopt;
  return grouping;
}

std::optional<Grouping> KernelSpace::most_fused(bool attention_alone) {
  const Graph& graph = block_->graph;
  const auto attention = [&](const UnitSet& kernel) {
    return has_attention(graph, operators(kernel));
  };
  std::optional<Grouping> grouping = least_fused();
  if (!grouping) return std::nullopt;
  std::vector<UnitSet> kernels = kernels_of(*grouping);
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t a = 0; a < kernels.size(); ++a) {
      for (std::size_t b = a + 1; b < kernels.size();) {
        const UnitSet both = kernels[a] | kernels[b];
        const bool apart = attention_alone && (attention(kernels[a]) || attention(kernels[b]));
        std::vector<UnitSet> next = kernels;
        next[a] = both;
        next.erase(next.begin() + static_cast<std::ptrdiff_t>(b));
        if (apart || both.count() > kLargestKernel || !adjacent(kernels[a], kernels[b]) ||
            !legal(both) || !order_groups(graph, groups(grouping_of(next)))) {
          ++b;
          continue;
        }
        kernels = std::move(next);
        changed = true;
      }
    }
  }
  return grouping_of(kernels);
}

}  // namespace fuseline
