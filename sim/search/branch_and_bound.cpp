#include "sim/search/branch_and_bound.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "sim/search/least_rest.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostKernels = 6'000;  // of one rewritten block
constexpr std::size_t kMostNodes = 1'500'000;
constexpr double kRounding = 1e-9;
constexpr double kRepeats = SimulationOptions{}.repeats;

// A rewritten block with its kernels and their least costs.
struct Opened {
  KernelMenu menu;
  LeastRest rest;

  Opened(std::vector<UnitSet> kernels, std::size_t units, std::vector<double> costs)
      : menu(std::move(kernels), units), rest(menu, units, std::move(costs)) {}
};

// Some kernels of a plan: those of its parent and one more.
struct Node {
  std::size_t block = 0;
  UnitSet covered{};
  double spent = 0;
  std::size_t parent = 0, kernel = 0;
};

class Bounding {
 public:
  Bounding(Evaluator& evaluator, LeastCosts& costs)
      : evaluator_(evaluator),
        costs_(costs),
        limit_(limit_of(evaluator.options().objective, evaluator.block(), evaluator.gpu())),
        opened_(evaluator.blocks()) {}

  SpaceBound run(const std::function<void(double)>& progress) {
    for (std::size_t b = 0; b < evaluator_.blocks(); ++b) push(limit_, {.block = b});
    SpaceBound out;
    while (!queue_.empty()) {
      const auto [bound, at] = queue_.top();
      if (bound >= evaluator_.best_value() * (1 - kRounding)) break;
      if (evaluator_.over()) break;
      queue_.pop();
      progress(std::min(bound, left_out_));
      const Node node = nodes_[at];
      if (!opened_[node.block]) {
        if (!open(node.block)) push(limit_, node);  // interrupted
      } else {
        expand(node, at, bound);
      }
    }
    const double next =
        queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.top().first;
    const double best = evaluator_.best_value();
    out.value = std::max(std::min({next, left_out_, best}), std::min(limit_, best));
    out.complete = out.value >= best * (1 - kRounding);
    if (out.complete) out.value = best;
    out.kernels = kernels_;
    return out;
  }

 private:
  using Entry = std::pair<double, std::size_t>;

  void push(double bound, const Node& node) {
    if (nodes_.size() >= kMostNodes) {
      left_out_ = std::min(left_out_, bound);
      return;
    }
    nodes_.push_back(node);
    queue_.emplace(bound, nodes_.size() - 1);
  }

  // False when the time was up.
  bool open(std::size_t block) {
    KernelSpace& space = evaluator_.space(block);
    if (!space.searchable()) {
      left_out_ = std::min(left_out_, limit_);
      opened_[block] = std::make_unique<Opened>(std::vector<UnitSet>{}, 0, std::vector<double>{});
      return true;
    }
    KernelSpace::Kernels kernels = space.kernels(kMostKernels);
    if (!kernels.all) left_out_ = std::min(left_out_, limit_);
    std::vector<const LeastCost*> least;
    for (const UnitSet& set : kernels.sets) {
      if (evaluator_.over()) return false;
      least.push_back(&costs_.of(space, set));
    }
    kernels_ += kernels.sets.size();
    const std::size_t units = space.units();
    const auto opened_with = [&](auto cost) {
      std::vector<double> all;
      for (const LeastCost* c : least) all.push_back(cost(*c));
      return std::make_unique<Opened>(kernels.sets, units, std::move(all));
    };
    const Gpu& gpu = evaluator_.gpu();
    const Objective objective = evaluator_.options().objective;
    const bool one_launch = evaluator_.options().allowed == Allowed::any_kernels;
    double clock = 1;
    if (objective == Objective::time && evaluator_.best()) {
      const double energy =
          opened_with([](const LeastCost& c) { return c.energy.value(); })->rest.of({});
      const double fastest = opened_with([&](const LeastCost& c) {
                               return least_of(Objective::time, c, gpu, 1, one_launch);
                             })->rest.of({});
      clock = highest_clock(gpu, Seconds(evaluator_.best_value()), Seconds(fastest), Joules(energy),
                            kRepeats);
    }
    opened_[block] = opened_with(
        [&](const LeastCost& c) { return least_of(objective, c, gpu, clock, one_launch); });
    const double root = std::max(limit_, opened_[block]->rest.of({}));
    if (root < std::numeric_limits<double>::infinity()) push(root, {.block = block});
    return true;
  }

  void expand(const Node& node, std::size_t at, double bound) {
    Opened& opened = *opened_[node.block];
    const KernelSpace& space = evaluator_.space(node.block);
    std::size_t first = 0;
    while (first < space.units() && node.covered.test(first)) ++first;
    if (first == space.units()) {
      if (!evaluator_.values({node.block, grouping_of(node)}))
        return;  // a cycle among kernels, or too large to be simulated
      return;
    }
    for (const std::size_t k : opened.menu.beginning[first]) {
      const UnitSet& set = opened.menu.sets[k];
      if ((set & node.covered).any()) continue;
      Node next{node.block, node.covered | set, node.spent + opened.rest.cost(k), at, k};
      // Rounding must not let a child fall below its parent.
      const double least = std::max(bound, next.spent + opened.rest.of(next.covered));
      if (least >= evaluator_.best_value() * (1 - kRounding)) continue;
      push(least, next);
    }
  }

  Grouping grouping_of(const Node& node) {
    std::vector<UnitSet> kernels;
    const Opened& opened = *opened_[node.block];
    for (Node n = node; n.covered.any(); n = nodes_[n.parent])
      kernels.push_back(opened.menu.sets[n.kernel]);
    return evaluator_.space(node.block).grouping_of(kernels);
  }

  Evaluator& evaluator_;
  LeastCosts& costs_;
  const double limit_;
  std::vector<std::unique_ptr<Opened>> opened_;  // by rewritten block
  std::vector<Node> nodes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  double left_out_ = std::numeric_limits<double>::infinity();  // bound of what has no node
  std::size_t kernels_ = 0;
};

}  // namespace

SpaceBound bound_space(Evaluator& evaluator, LeastCosts& costs,
                       const std::function<void(double)>& progress) {
  return Bounding(evaluator, costs).run(progress);
}

}  // namespace fuseline
