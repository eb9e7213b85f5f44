#include "sim/search/distribution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/csv.h"
#include "base/error.h"
#include "base/json_text.h"
#include "model/blocks/block.h"
#include "model/policy.h"
#include "sim/gpu/plan_target.h"
#include "sim/search/evaluator.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostShapes = 64;  // every plan is simulated at every size
constexpr std::int64_t kLargestSize = 16'777'216;
constexpr const char* kUnfused = "per-operator";

// What stays the same from size to size.
struct Choices {
  std::string policy;  // whose own plan it is; empty: the kernels below
  std::vector<std::string> rewrites;
  std::vector<std::vector<std::string>> kernels;
  bool one_launch = false;

  friend bool operator==(const Choices&, const Choices&) = default;
};

Choices choices_of(const SearchResult& r) {
  Choices c{.policy = r.policys_own, .rewrites = r.plan.rewrites, .kernels = {}};
  for (const Kernel& k : r.plan.kernels) {
    c.one_launch = c.one_launch || k.phases.size() != 1;
    std::vector<std::string> names;
    for (const OpId id : k.ops) names.push_back(r.plan.graph.op(id).name);
    c.kernels.push_back(std::move(names));
  }
  return c;
}

// One size of the block, at which choices are tried.
class Size {
 public:
  Size(const PredictionCase& c, Workload work, const SearchOptions& options)
      : work_(work),
        gpu_(c.gpu),
        constraints_(options.constraints),
        block_(build_block(c.model, work)),
        evaluator_(block_, gpu_, {.launching = c.launching, .allowed = options.allowed}) {}

  [[nodiscard]] const Graph& block() const { return block_; }
  [[nodiscard]] const Workload& work() const { return work_; }

  Seconds time(const Choices& choices) {
    if (choices.policy.empty() && !choices.one_launch) {
      if (const auto found = time_of_kernels(choices)) return *found;
      return time_of_policy(kUnfused);
    }
    return time_of_policy(choices.policy.empty() ? kUnfused : choices.policy);
  }

 private:
  Seconds time_of_policy(const std::string& policy) const {
    return evaluator_.estimate(make_plan(policy, block_, plan_target(gpu_))).time;
  }

  // Empty where the choices do not exist at this size, or are not legal.
  std::optional<Seconds> time_of_kernels(const Choices& choices) {
    const auto number = numbered(choices.rewrites);
    if (!number) return std::nullopt;
    KernelSpace& space = evaluator_.space(*number);
    const Graph& graph = space.block().graph;
    Groups groups;
    for (const std::vector<std::string>& names : choices.kernels) {
      std::vector<OpId> ops;
      for (const std::string& name : names) {
        const auto id = graph.find_op(name);
        if (!id) return std::nullopt;
        ops.push_back(*id);
      }
      groups.push_back(std::move(ops));
    }
    const auto grouping = space.grouping_of(groups);
    if (!grouping || !space.legal(*grouping)) return std::nullopt;
    const auto values = evaluator_.values({*number, *grouping});
    if (!values) return std::nullopt;
    return Seconds((*values)[static_cast<std::size_t>(Objective::time)]);
  }

  std::optional<std::size_t> numbered(const std::vector<std::string>& rewrites) {
    if (evaluator_.blocks() == 0) {
      for (RewrittenBlock& b : rewritten_blocks(block_)) evaluator_.add(std::move(b), constraints_);
    }
    for (std::size_t b = 0; b < evaluator_.blocks(); ++b)
      if (evaluator_.space(b).block().rewrites == rewrites && evaluator_.space(b).searchable())
        return b;
    return std::nullopt;
  }

  const Workload work_;
  const Gpu& gpu_;
  const std::vector<Constraint>& constraints_;
  const Graph block_;
  Evaluator evaluator_;
};

class Buckets {
 public:
  // times[i][j]: the choices of shape i at shape j.
  Buckets(const std::vector<std::vector<Seconds>>& times, const std::vector<ShapeWeight>& shapes)
      : times_(times), shapes_(shapes) {}

  [[nodiscard]] std::size_t best_of(const std::vector<std::size_t>& kept, std::size_t shape) const {
    return *std::ranges::min_element(kept, {},
                                     [&](std::size_t i) { return times_[i][shape].value(); });
  }

  [[nodiscard]] Seconds mean(const std::vector<std::size_t>& kept) const {
    Seconds sum;
    double weights = 0;
    for (std::size_t j = 0; j < shapes_.size(); ++j) {
      sum += times_[best_of(kept, j)][j] * shapes_[j].weight;
      weights += shapes_[j].weight;
    }
    return sum / weights;
  }

  [[nodiscard]] std::vector<std::size_t> chosen(std::size_t most) const {
    std::vector<std::size_t> kept;
    while (kept.size() < std::min(most, shapes_.size())) {
      std::vector<std::size_t> best;
      for (std::size_t i = 0; i < shapes_.size(); ++i) {
        std::vector<std::size_t> more = kept;
        more.push_back(i);
        if (best.empty() || mean(more) < mean(best)) best = std::move(more);
      }
      if (!kept.empty() && mean(best) >= mean(kept)) break;  // one more gains nothing
      kept = std::move(best);
      exchange(kept);
    }
    std::ranges::sort(kept);
    return kept;
  }

 private:
  void exchange(std::vector<std::size_t>& kept) const {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t& one : kept) {
        for (std::size_t i = 0; i < shapes_.size(); ++i) {
          const Seconds before = mean(kept);
          const std::size_t old = std::exchange(one, i);
          if (mean(kept) < before)
            better = true;
          else
            one = old;
        }
      }
    }
  }

  const std::vector<std::vector<Seconds>>& times_;
  const std::vector<ShapeWeight>& shapes_;
};

Workload at(Workload work, const ShapeWeight& shape) {
  work.batch = shape.batch;
  work.seq = shape.tokens;
  work.context = work.phase == Phase::decode ? shape.context : 0;
  return work;
}

}  // namespace

std::vector<ShapeWeight> read_distribution(const std::string& path) {
  const CsvTable table(path);
  std::vector<ShapeWeight> shapes;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
  double all = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto size = [&](const char* column, std::int64_t least) {
      const std::int64_t n = table.whole(row, column, least);
      if (n > kLargestSize)
        table.fail(row, column, "is too large", fmt::format("up to {}", kLargestSize));
      return n;
    };
    ShapeWeight s{
        .batch = size("batch", 1), .tokens = size("tokens", 1), .context = size("context", 0)};
    s.weight = table.text(row, "weight") == "0" ? 0 : table.positive(row, "weight");
    if (!seen.insert({s.batch, s.tokens, s.context}).second)
      table.fail(row, "tokens", "is a shape that an earlier line has", "every shape once");
    all += s.weight;
    if (s.weight > 0) shapes.push_back(s);
  }
  if (all <= 0)
    throw InputError({.file = path,
                      .field = "weight",
                      .message = "is 0 on every line, so there is nothing to weigh",
                      .allowed = "a weight above 0 on some line"});
  if (shapes.size() > kMostShapes)
    throw InputError({.file = path,
                      .field = "batch, tokens, context",
                      .value = std::to_string(shapes.size()) + " shapes",
                      .message = "are more than a search takes",
                      .allowed = fmt::format("up to {}; sum the weights of shapes that are alike",
                                             kMostShapes)});
  return shapes;
}

DistributionResult search_distribution(const PredictionCase& c,
                                       const std::vector<ShapeWeight>& shapes, std::size_t buckets,
                                       const SearchOptions& options) {
  FUSELINE_ASSERT(!shapes.empty() && buckets > 0, "a distribution without shapes or plans");
  for (const ShapeWeight& shape : shapes) check_workload(at(c.workload, shape), c.model);
  DistributionResult out;
  std::vector<Choices> choices;
  SearchOptions each = options;
  each.objective = Objective::time;
  each.front_with.reset();
  each.decisions = false;
  each.budget_seconds = options.budget_seconds / static_cast<double>(shapes.size());
  std::vector<std::unique_ptr<Size>> sizes;
  for (const ShapeWeight& shape : shapes) {
    const std::size_t number = sizes.size();
    if (options.progress) {
      each.progress = [&, number](const std::string& what, double) {
        options.progress(fmt::format("shape {} of {}: {}", number + 1, shapes.size(), what),
                         static_cast<double>(number) / static_cast<double>(shapes.size()));
      };
    }
    sizes.push_back(std::make_unique<Size>(c, at(c.workload, shape), options));
    const SearchResult r =
        search_block(sizes.back()->block(), c.gpu, sizes.back()->work(), c.launching, each);
    choices.push_back(choices_of(r));
    out.shapes.push_back({.shape = shape, .complete = r.complete, .own = r.estimate.time});
    out.stopped = out.stopped || r.stopped;
  }
  std::vector<std::vector<Seconds>> times(shapes.size(), std::vector<Seconds>(shapes.size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    out.different += std::find(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(i),
                               choices[i]) == choices.begin() + static_cast<std::ptrdiff_t>(i)
                         ? 1
                         : 0;
    for (std::size_t j = 0; j < shapes.size(); ++j)
      times[i][j] = i == j ? out.shapes[j].own : sizes[j]->time(choices[i]);
  }
  // Another shape's choices may be better than what a search found before its time was up.
  for (std::size_t j = 0; j < shapes.size(); ++j)
    for (std::size_t i = 0; i < shapes.size(); ++i)
      out.shapes[j].own = std::min(out.shapes[j].own, times[i][j]);
  const Buckets choose(times, shapes);
  out.for_all = choose.chosen(1).front();
  out.buckets = choose.chosen(buckets);
  out.one = choose.mean({out.for_all});
  out.bucketed = choose.mean(out.buckets);
  Seconds sum;
  double weights = 0;
  for (std::size_t j = 0; j < shapes.size(); ++j) {
    ShapeResult& s = out.shapes[j];
    s.shared = times[out.for_all][j];
    s.choices = choose.best_of(out.buckets, j);
    s.bucketed = times[s.choices][j];
    sum += s.own * s.shape.weight;
    weights += s.shape.weight;
  }
  out.each = sum / weights;
  return out;
}

std::string distribution_json(const PredictionCase& c, const DistributionResult& r) {
  using nlohmann::ordered_json;
  ordered_json shapes = ordered_json::array();
  for (const ShapeResult& s : r.shapes)
    shapes.push_back({{"batch", s.shape.batch},
                      {"tokens", s.shape.tokens},
                      {"context", s.shape.context},
                      {"weight", s.shape.weight},
                      {"optimal", s.complete},
                      {"time_us", to_us(s.own)},
                      {"one_plan_time_us", to_us(s.shared)},
                      {"bucket_time_us", to_us(s.bucketed)},
                      {"bucket", s.choices}});
  return json_text({{"schema", "fuseline.distribution/1"},
                    {"model", c.model.name},
                    {"gpu", c.gpu.name},
                    {"phase", name_of(c.workload.phase)},
                    {"mean_us_plan_for_each", to_us(r.each)},
                    {"mean_us_buckets", to_us(r.bucketed)},
                    {"mean_us_one_plan", to_us(r.one)},
                    {"different_plans", r.different},
                    {"one_plan_of", r.for_all},
                    {"buckets", r.buckets},
                    {"stopped", r.stopped},
                    {"shapes", std::move(shapes)}});
}

}  // namespace fuseline
