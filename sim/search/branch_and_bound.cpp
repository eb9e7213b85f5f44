#include "sim/search/branch_and_bound.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/piece_text.h"
#include "sim/search/least_rest.h"
#include "sim/search/trials.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostKernels = 6'000;  // of one rewritten block
constexpr std::size_t kMostNodes = 1'500'000;
constexpr double kRounding = 1e-9;
constexpr double kRepeats = SimulationOptions{}.repeats;

// Plans that are simulated together. The same number everywhere, so that the same plans are looked
// at however many threads and ranks there are.
constexpr std::size_t kTogether = 64;
constexpr std::size_t kNodesBetweenLooks = 20'000;  // at the clock

// A rewritten block with its kernels and their least costs.
struct Opened {
  KernelMenu menu;
  LeastRest rest;

  Opened(std::vector<UnitSet> kernels, std::size_t units, std::vector<double> costs)
      : menu(std::move(kernels), units), rest(menu, units, std::move(costs)) {}
};

// What a piece of work says of a rewritten block.
struct OpenedBlock {
  bool all = true;  // these are all kernels
  double root = 0;  // the least of all plans
  std::vector<UnitSet> kernels;
  std::vector<double> costs;
};

constexpr std::size_t kWord = 64;

std::string packed_block(const OpenedBlock& block) {
  PieceWriter out;
  out.flag(block.all).real(block.root);
  const UnitSet low(~std::uint64_t{0});
  for (std::size_t k = 0; k < block.kernels.size(); ++k) {
    for (std::size_t at = 0; at < kMostUnits; at += kWord)
      out.bits(((block.kernels[k] >> at) & low).to_ullong());
    out.real(block.costs[k]);
  }
  return std::move(out).text();
}

OpenedBlock unpacked_block(const std::string& text) {
  PieceReader in(text);
  OpenedBlock block;
  block.all = in.flag();
  block.root = in.real();
  while (in.more()) {
    UnitSet kernel;
    for (std::size_t at = 0; at < kMostUnits; at += kWord) kernel |= UnitSet(in.bits()) << at;
    block.kernels.push_back(kernel);
    block.costs.push_back(in.real());
  }
  return block;
}

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
    if (limit_ < evaluator_.best_value() * (1 - kRounding)) open_all(progress);
    while (!queue_.empty() && !evaluator_.over()) {
      gather(progress);
      if (leaves_.empty() && looked_at_ < kNodesBetweenLooks) break;
      simulate_leaves();
    }
    const double next =
        queue_.empty() ? std::numeric_limits<double>::infinity() : queue_.top().first;
    const double best = evaluator_.best_value();
    out_.value = std::max(std::min({next, left_out_, best}), std::min(limit_, best));
    out_.complete = out_.value >= best * (1 - kRounding);
    if (out_.complete) out_.value = best;
    return out_;
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

  // Every rewritten block's kernels with what they cost at least, a block a piece.
  void open_all(const std::function<void(double)>& progress) {
    progress(limit_);
    const std::vector<std::string> texts =
        evaluator_.share(fmt::format("bounds beside {:a}", evaluator_.best_value()),
                         evaluator_.blocks(), [&](std::size_t b) { return opened_text(b); });
    for (std::size_t b = 0; b < texts.size(); ++b) {
      if (texts[b].empty()) {  // the time was up
        left_out_ = std::min(left_out_, limit_);
        continue;
      }
      OpenedBlock block = unpacked_block(texts[b]);
      if (!block.all) left_out_ = std::min(left_out_, limit_);
      out_.kernels += block.kernels.size();
      if (block.root >= std::numeric_limits<double>::infinity()) continue;
      opened_[b] = std::make_unique<Opened>(std::move(block.kernels), evaluator_.space(b).units(),
                                            std::move(block.costs));
      push(std::max(limit_, block.root), {.block = b});
    }
  }

  // Empty when the time was up.
  std::string opened_text(std::size_t b) {
    KernelSpace& space = evaluator_.space(b);
    OpenedBlock out;
    out.root = std::numeric_limits<double>::infinity();
    if (!space.searchable()) {
      out.all = false;
      return packed_block(out);
    }
    KernelSpace::Kernels kernels = space.kernels(kMostKernels);
    out.all = kernels.all;
    std::vector<const LeastCost*> least;
    for (const UnitSet& set : kernels.sets) {
      if (evaluator_.late()) return "";
      least.push_back(&costs_.of(space, set));
    }
    out.kernels = std::move(kernels.sets);
    const KernelMenu menu(out.kernels, space.units());
    const auto costs_with = [&](auto cost) {
      std::vector<double> all;
      for (const LeastCost* c : least) all.push_back(cost(*c));
      return all;
    };
    const auto least_of_all = [&](std::vector<double> costs) {
      return LeastRest(menu, space.units(), std::move(costs)).of({});
    };
    const Gpu& gpu = evaluator_.gpu();
    const Objective objective = evaluator_.options().objective;
    const bool one_launch = evaluator_.options().allowed == Allowed::any_kernels;
    double clock = 1;
    if (objective == Objective::time && evaluator_.best()) {
      const double energy =
          least_of_all(costs_with([](const LeastCost& c) { return c.energy.value(); }));
      const double fastest = least_of_all(costs_with(
          [&](const LeastCost& c) { return least_of(Objective::time, c, gpu, 1, one_launch); }));
      clock = highest_clock(gpu, Seconds(evaluator_.best_value()), Seconds(fastest), Joules(energy),
                            kRepeats);
    }
    out.costs = costs_with(
        [&](const LeastCost& c) { return least_of(objective, c, gpu, clock, one_launch); });
    out.root = least_of_all(out.costs);
    return packed_block(out);
  }

  // Nodes from the least bound upwards, until enough of them are plans. All of it is the same at
  // every process.
  void gather(const std::function<void(double)>& progress) {
    leaves_.clear();
    looked_at_ = 0;
    while (!queue_.empty() && leaves_.size() < kTogether && looked_at_ < kNodesBetweenLooks) {
      const auto [bound, at] = queue_.top();
      if (bound >= evaluator_.best_value() * (1 - kRounding)) return;
      if (alone() && evaluator_.over()) return;
      // What was found by the leaves before it may rule this one out.
      queue_.pop();
      ++looked_at_;
      progress(std::min(bound, left_out_));
      expand(at, bound);
    }
  }

  // The clock may be looked at for each node where nobody shares the work.
  [[nodiscard]] bool alone() const { return evaluator_.options().sharing == nullptr; }

  void expand(std::size_t at, double bound) {
    const Node node = nodes_[at];
    Opened& opened = *opened_[node.block];
    const KernelSpace& space = evaluator_.space(node.block);
    std::size_t first = 0;
    while (first < space.units() && node.covered.test(first)) ++first;
    if (first == space.units()) {
      leaves_.push_back({bound, {node.block, grouping_of(node)}});
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

  // Where the time was up before a plan was simulated, its bound stays.
  void simulate_leaves() {
    PieceWriter name;
    for (const Leaf& leaf : leaves_)
      name.whole(static_cast<std::int64_t>(leaf.plan.block))
          .word({reinterpret_cast<const char*>(leaf.plan.grouping.data()),
                 leaf.plan.grouping.size()});
    const std::vector<std::string> texts =
        evaluator_.share(std::move(name).text(), leaves_.size(), [&](std::size_t i) {
          Trials trials(evaluator_);
          if (evaluator_.late()) return std::string();
          static_cast<void>(trials.values(leaves_[i].plan));
          return simulated_ + trials.text();
        });
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].empty())
        left_out_ = std::min(left_out_, leaves_[i].bound);
      else
        evaluator_.take({evaluator_, texts[i].substr(simulated_.size())});
    }
  }

  Grouping grouping_of(const Node& node) {
    std::vector<UnitSet> kernels;
    const Opened& opened = *opened_[node.block];
    for (Node n = node; n.covered.any(); n = nodes_[n.parent])
      kernels.push_back(opened.menu.sets[n.kernel]);
    return evaluator_.space(node.block).grouping_of(kernels);
  }

  struct Leaf {
    double bound = 0;
    Candidate plan;
  };
  const std::string simulated_ = "+";  // what was known before gives an empty text

  Evaluator& evaluator_;
  LeastCosts& costs_;
  const double limit_;
  std::vector<std::unique_ptr<Opened>> opened_;  // by rewritten block
  std::vector<Node> nodes_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<Leaf> leaves_;
  std::size_t looked_at_ = 0;
  double left_out_ = std::numeric_limits<double>::infinity();  // bound of what has no node
  SpaceBound out_;
};

}  // namespace

SpaceBound bound_space(Evaluator& evaluator, LeastCosts& costs,
                       const std::function<void(double)>& progress) {
  return Bounding(evaluator, costs).run(progress);
}

}  // namespace fuseline
