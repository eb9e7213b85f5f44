#include "sim/search/descent.h"
#include "sim/search/trials.h"

#include <algorithm>
#include <set>

namespace fuseline {

namespace {

constexpr double kLeastStep = 1e-9;

// Groupings one step away, those that join kernels first: most steps that gain are such.
std::vector<Grouping> neighbours(KernelSpace& space, const Grouping& grouping) {
  const std::vector<UnitSet> kernels = space.kernels_of(grouping);
  std::vector<Grouping> out;
  const auto propose = [&](std::vector<UnitSet> changed) {
    std::erase_if(changed, [](const UnitSet& k) { return k.none(); });
    out.push_back(space.grouping_of(changed));
  };
  for (std::size_t a = 0; a < kernels.size(); ++a) {
    for (std::size_t b = a + 1; b < kernels.size(); ++b) {
      const UnitSet both = kernels[a] | kernels[b];
      if (!space.adjacent(kernels[a], kernels[b]) || !space.legal(both)) continue;
      std::vector<UnitSet> changed = kernels;
      changed[a] = both;
      changed[b].reset();
      propose(std::move(changed));
    }
  }
  for (std::size_t a = 0; a < kernels.size(); ++a) {
    if (kernels[a].count() < 2) continue;
    for (std::size_t u = 0; u < space.units(); ++u) {
      if (!kernels[a].test(u)) continue;
      const UnitSet one = space.only(u), rest = kernels[a] & ~one;
      if (!space.legal(rest)) continue;
      std::vector<UnitSet> changed = kernels;
      changed[a] = rest;
      if (space.legal(one)) {
        changed.push_back(one);
        propose(changed);
        changed.pop_back();
      }
      for (std::size_t b = 0; b < kernels.size(); ++b) {
        if (b == a || !space.adjacent(kernels[b], one) || !space.legal(kernels[b] | one)) continue;
        changed[b] |= one;
        propose(changed);
        changed[b] = kernels[b];
      }
    }
  }
  return out;
}

}  // namespace

Candidate descend(Trials& trials, Candidate from, const Score& score, std::size_t most_tried) {
  const auto start = trials.values(from);
  if (!start) return from;
  KernelSpace& space = trials.space(from.block);
  double now = score(*start);
  const std::size_t begin = trials.tried();
  for (bool better = true; better;) {
    better = false;
    for (Grouping& next : neighbours(space, from.grouping)) {
      if (trials.over() || trials.tried() - begin >= most_tried) return from;
      const auto values = trials.values({from.block, next});
      if (!values || score(*values) >= now * (1 - kLeastStep)) continue;
      now = score(*values);
      from.grouping = std::move(next);
      better = true;
      break;
    }
  }
  return from;
}

std::optional<Grouping> carried_over(const Evaluator& evaluator, const Candidate& from,
                                     std::size_t to) {
  const KernelSpace& old = evaluator.space(from.block);
  KernelSpace& space = evaluator.space(to);
  const auto least = space.least_fused();
  if (!least) return std::nullopt;
  const Graph& graph = space.block().graph;
  std::vector<UnitSet> kernels = space.kernels_of(*least);
  for (const std::vector<OpId>& group : old.groups(from.grouping)) {
    std::set<std::string> names;
    for (const OpId id : group) names.insert(old.block().graph.op(id).name);
    const auto of_group = [&](const UnitSet& kernel) {
      return std::ranges::any_of(space.operators(kernel),
                                 [&](OpId id) { return names.contains(graph.op(id).name); });
    };
    for (bool joined = true; joined;) {
      joined = false;
      for (std::size_t a = 0; a < kernels.size() && !joined; ++a) {
        for (std::size_t b = a + 1; b < kernels.size() && !joined; ++b) {
          if (!of_group(kernels[a]) || !of_group(kernels[b])) continue;
          if (!space.adjacent(kernels[a], kernels[b]) || !space.legal(kernels[a] | kernels[b]))
            continue;
          std::vector<UnitSet> next = kernels;
          next[a] |= next[b];
          next.erase(next.begin() + static_cast<std::ptrdiff_t>(b));
          if (!order_groups(graph, space.groups(space.grouping_of(next)))) continue;
          kernels = std::move(next);
          joined = true;
        }
      }
    }
  }
  return space.grouping_of(kernels);
}

}  // namespace fuseline
