#include "sim/search/decisions.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/search/descent.h"
#include "sim/search/trials.h"

namespace fuseline {

namespace {

constexpr std::size_t kStepsAfterRewrite = 60;  // plans tried where a rewrite is undone

class Undoing {
 public:
  Undoing(Evaluator& evaluator, const Candidate& best, const PlanEstimate& estimate,
          const Sureness& sure)
      : evaluator_(evaluator), best_(best), estimate_(estimate), sure_(sure) {}

  std::vector<Decision> all() {
    edges_apart();
    rewrites_undone();
    std::ranges::stable_sort(out_, [](const Decision& a, const Decision& b) {
      return std::pair(a.value, a.gain.gain()) > std::pair(b.value, b.gain.gain());
    });
    return std::move(out_);
  }

 private:
  void add(const std::string& kind, const std::string& what, const Candidate& without) {
    if (!evaluator_.values(without)) return;
    const Plan plan = evaluator_.plan(without, false);
    const PlanEstimate estimate = evaluator_.estimate(plan);
    Decision d{.kind = kind,
               .what = what,
               .gain = {.without = estimate.time, .with = estimate_.time, .verdict = {}},
               .value = value_of(evaluator_.options().objective, plan, estimate, evaluator_.gpu())};
    const DifferentKernels parts = different_kernels(estimate, estimate_);
    d.gain.band = sure_.gain_of_part(estimate, estimate_, parts.before, parts.after);
    d.gain.verdict = verdict_of(d.gain.gain(), d.gain.band);
    out_.push_back(std::move(d));
  }

  // The units of the kernel that are reached from `begin` over edges of the graph; not over the one
  // from a to b.
  UnitSet reached(const UnitSet& kernel, std::size_t begin, std::size_t a, std::size_t b) const {
    const KernelSpace& space = evaluator_.space(best_.block);
    UnitSet seen = space.only(begin);
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t u = 0; u < space.units(); ++u) {
        if (!seen.test(u)) continue;
        for (std::size_t v = 0; v < space.units(); ++v) {
          if (seen.test(v) || !kernel.test(v)) continue;
          if ((u == a && v == b) || (u == b && v == a)) continue;
          if (!space.adjacent(space.only(u), space.only(v))) continue;
          seen.set(v);
          grew = true;
        }
      }
    }
    return seen;
  }

  void edges_apart() {
    KernelSpace& space = evaluator_.space(best_.block);
    const Graph& graph = space.block().graph;
    std::map<Grouping, std::size_t> known;  // by what is left: the decision's place
    for (const Edge& e : edges(graph)) {
      const std::vector<UnitSet> kernels = space.kernels_of(best_.grouping);
      std::size_t a = space.units(), b = a;
      for (std::size_t u = 0; u < space.units(); ++u) {
        const std::vector<OpId> ops = space.operators(space.only(u));
        if (std::ranges::find(ops, e.from) != ops.end()) a = u;
        if (std::ranges::find(ops, e.to) != ops.end()) b = u;
      }
      const auto kernel =
          std::ranges::find_if(kernels, [&](const UnitSet& k) { return k.test(a) && k.test(b); });
      if (a == b || kernel == kernels.end()) continue;
      const std::string what = graph.tensor(e.tensor).name + " between " + graph.op(e.from).name +
                               " and " + graph.op(e.to).name;
      for (const UnitSet& part : {reached(*kernel, b, a, b), space.only(b), space.only(a)}) {
        const UnitSet rest = *kernel & ~part;
        if (rest.none() || !space.legal(part) || !space.legal(rest)) continue;
        std::vector<UnitSet> changed = kernels;
        changed[static_cast<std::size_t>(kernel - kernels.begin())] = rest;
        changed.push_back(part);
        const Candidate without{best_.block, space.grouping_of(changed)};
        if (!evaluator_.values(without)) continue;
        if (known.try_emplace(without.grouping, out_.size()).second) add("on chip", what, without);
        break;
      }
    }
  }

  void rewrites_undone() {
    const std::vector<std::string>& mine = evaluator_.space(best_.block).block().rewrites;
    for (const std::string& name : mine) {
      if (name == "accumulate_dq") continue;  // no choice
      // Of the lists without it the one that is most like this one.
      std::optional<std::size_t> nearest;
      std::size_t most = 0;
      for (std::size_t b = 0; b < evaluator_.blocks(); ++b) {
        const std::vector<std::string>& theirs = evaluator_.space(b).block().rewrites;
        if (std::ranges::find(theirs, name) != theirs.end()) continue;
        std::size_t alike = 0;
        for (const std::string& other : theirs) {
          if (std::ranges::find(mine, other) == mine.end()) {
            alike = 0;
            break;
          }
          ++alike;
        }
        if (!nearest ? alike > 0 || theirs.empty() : alike > most) {
          nearest = b;
          most = alike;
        }
      }
      if (!nearest) continue;
      const auto grouping = carried_over(evaluator_, best_, *nearest);
      if (!grouping) continue;
      const auto place = static_cast<std::size_t>(evaluator_.options().objective);
      Trials trials(evaluator_);
      const Candidate without = descend(
          trials, {*nearest, *grouping}, [place](const PlanValues& v) { return v[place]; },
          kStepsAfterRewrite);
      evaluator_.take(trials);
      add("rewrite", name, without);
    }
  }

  Evaluator& evaluator_;
  const Candidate best_;  // its own: better ones may be tried meanwhile
  const PlanEstimate& estimate_;
  const Sureness& sure_;
  std::vector<Decision> out_;
};

}  // namespace

DifferentKernels different_kernels(const PlanEstimate& before, const PlanEstimate& after) {
  // A split product's second launch has no operators: it goes with the kernel before it.
  using Kind =
      std::tuple<std::vector<std::string>, std::vector<std::int64_t>, std::vector<std::int64_t>>;
  const auto of = [](const PlanEstimate& e) {
    std::map<Kind, Seconds> kinds;
    Kind last;
    for (const KernelEstimate& k : e.kernels) {
      if (!k.operators.empty()) last = {k.operators, k.tile, k.choice};
      kinds[last] += k.time;
    }
    return kinds;
  };
  const std::map<Kind, Seconds> a = of(before), b = of(after);
  // Its phases may differ where its operators do not.
  const bool one_launch = before.kernels.front().kind == KernelKind::block;
  DifferentKernels out;
  for (const auto& [kind, time] : a)
    if (!b.contains(kind) || one_launch) out.before += time;
  for (const auto& [kind, time] : b)
    if (!a.contains(kind) || one_launch) out.after += time;
  return out;
}

std::vector<Decision> decisions_of(Evaluator& evaluator, const Candidate& best,
                                   const PlanEstimate& estimate, const Sureness& sure) {
  return Undoing(evaluator, best, estimate, sure).all();
}

}  // namespace fuseline
