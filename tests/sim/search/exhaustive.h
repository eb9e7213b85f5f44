// Every plan of a small graph, found without the search: all ways of parting its operators whose
// parts are legal and can be ordered, after each list of rewrites.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/assemble.h"
#include "model/implementation.h"
#include "model/lower.h"
#include "model/policies/all_policies.h"
#include "model/program.h"
#include "model/why_not.h"
#include "sim/block/estimate.h"
#include "sim/gpu/plan_target.h"
#include "sim/search/rewrite_space.h"

namespace fuseline::test {

class AllPlans {
 public:
  using Visit = std::function<void(const Groups&, const PlanEstimate&)>;

  AllPlans(const Graph& block, const RewrittenBlock& rewritten, const Gpu& gpu)
      : block_(block), rewritten_(rewritten), graph_(rewritten.graph), gpu_(gpu) {
    units_ = fuse_attention(graph_, one_each(graph_));
    const auto order = order_groups(graph_, units_);
    Groups ordered;
    for (const std::size_t g : *order) ordered.push_back(units_[g]);
    units_ = ordered;
  }

  [[nodiscard]] std::size_t units() const { return units_.size(); }

  // Calls visit for every plan.
  void each(const Visit& visit) {
    std::vector<unsigned> parts;
    part(0, parts, visit);
  }

 private:
  [[nodiscard]] std::vector<OpId> ops(unsigned set) const {
    std::vector<OpId> all;
    for (std::size_t u = 0; u < units_.size(); ++u)
      if ((set >> u & 1) != 0) all.insert(all.end(), units_[u].begin(), units_[u].end());
    return all;
  }

  bool possible(unsigned set) {
    const auto [at, first] = possible_.try_emplace(set, false);
    if (!first) return at->second;
    const std::vector<OpId> all = ops(set);
    if (!why_no_program(graph_, all, plan_target(gpu_)).empty()) return false;
    return at->second = check_program(graph_, lower(graph_, "k", all)).empty();
  }

  [[nodiscard]] bool edge_between(unsigned a, unsigned b) const {
    const std::vector<OpId> from = ops(a), to = ops(b);
    const auto in = [](const std::vector<OpId>& all, OpId id) {
      return std::ranges::find(all, id) != all.end();
    };
    return std::ranges::any_of(edges(graph_), [&](const Edge& e) {
      return (in(from, e.from) && in(to, e.to)) || (in(to, e.from) && in(from, e.to));
    });
  }

  [[nodiscard]] bool side_by_side(unsigned a, unsigned b) const {
    for (const SiblingRule& rule : {policy::coda().siblings, policy::per_operator().siblings})
      if (rule(graph_, ops(a), ops(b)) || rule(graph_, ops(b), ops(a))) return true;
    return false;
  }

  // Whether the set is one unit, or a unit joined to such a set.
  bool connected(unsigned set) {
    if ((set & (set - 1)) == 0) return true;
    const auto [at, first] = connected_.try_emplace(set, false);
    if (!first) return at->second;
    for (std::size_t u = 0; u < units_.size() && !at->second; ++u) {
      const unsigned one = 1U << u, rest = set & ~one;
      if ((set & one) == 0 || !connected(rest)) continue;
      at->second = edge_between(one, rest) || (possible(rest) && side_by_side(rest, one));
    }
    return at->second;
  }

  void part(unsigned covered, std::vector<unsigned>& parts, const Visit& visit) {
    const unsigned all = (1U << units_.size()) - 1;
    if (covered == all) {
      Groups groups;
      for (const unsigned set : parts) groups.push_back(ops(set));
      if (order_groups(graph_, groups)) visit(groups, predicted(groups));
      return;
    }
    const unsigned rest = all & ~covered, first = rest & (~rest + 1);
    for (unsigned more = rest & ~first;; more = (more - 1) & rest & ~first) {
      const unsigned set = first | more;
      if (possible(set) && connected(set)) {
        parts.push_back(set);
        part(covered | set, parts, visit);
        parts.pop_back();
      }
      if (more == 0) break;
    }
  }

  [[nodiscard]] PlanEstimate predicted(const Groups& groups) const {
    PlanParts p;
    p.policy = "exhaustive";
    p.graph = graph_;
    p.block = block_;
    p.groups = groups;
    p.implement = hand_written_implementation;
    p.rewrites = rewritten_.rewrites;
    p.preparation = rewritten_.preparation;
    p.target = plan_target(gpu_);
    p.reasons = false;
    return simulate(assemble(std::move(p)), gpu_, Fidelity::hierarchy);
  }

  const Graph& block_;
  const RewrittenBlock& rewritten_;
  const Graph& graph_;
  const Gpu& gpu_;
  Groups units_;
  std::map<unsigned, bool> possible_, connected_;
};

}  // namespace fuseline::test
