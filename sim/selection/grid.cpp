#include "sim/selection/grid.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "model/policy.h"
#include "sim/selection/known_files.h"
#include "sim/selection/size_list.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostPredictions = 20'000;  // that are kept whole
constexpr std::size_t kMostLines = 1'000'000;     // that become lines one after the other

void refuse_more_than(std::size_t most, std::size_t predictions) {
  if (predictions <= most) return;
  throw InputError({.file = kCommandLine,
                    .message = fmt::format("the grid is too large: {} predictions", predictions),
                    .allowed = fmt::format("at most {}", most)});
}

// One value where the option was not given: what the scenario or the defaults say.
using Texts = std::vector<std::optional<std::string>>;

Texts named_values(const char* option, const std::optional<std::string>& text) {
  if (!text) return {std::nullopt};
  Texts out;
  for (const std::string& name : parse_list(option, *text)) out.emplace_back(name);
  return out;
}

Texts sizes(const char* option, const std::optional<std::string>& text) {
  if (!text) return {std::nullopt};
  Texts out;
  for (const std::int64_t size : parse_sizes(option, *text, 1, kLargestDimension)) {
    out.emplace_back(std::to_string(size));
  }
  return out;
}

struct Job {
  std::size_t cell = 0;
  std::size_t policy = 0;
};

}  // namespace

std::size_t SweepGrid::Part::cells() const {
  std::size_t count = 1;
  for (const Dimension& d : dimensions) count *= d.values.size();
  return count;
}

// Models vary slowest, then GPUs, phases, batches, seqs, contexts and dtypes. Where decode stands
// beside other phases, --context is its list and --seq that of the others: then phases have parts
// of their own for each model and GPU.
SweepGrid::SweepGrid(const std::optional<std::string>& scenario_path, SelectionWords lists,
                     std::optional<std::string> price)
    : scenario_path_(scenario_path),
      price_(std::move(price)),
      lists_(std::move(lists)),
      known_(std::make_shared<KnownFiles>()) {
  using Words = SelectionWords;
  const Texts models = named_values("--model", lists_.model);
  const Texts gpus = named_values("--gpu", lists_.gpu);
  const Texts phases = named_values("--phase", lists_.phase);
  const Dimension batch{&Words::batch, sizes("--batch", lists_.batch)};
  const Dimension seq{&Words::seq, sizes("--seq", lists_.seq)};
  const Dimension context{&Words::context, sizes("--context", lists_.context)};
  const Dimension dtype{&Words::dtype, named_values("--dtype", lists_.dtype)};
  if (scenario_path_) scenario_ = load_scenario(*scenario_path_);
  const double most =
      static_cast<double>(models.size()) * static_cast<double>(gpus.size()) *
      static_cast<double>(phases.size()) * static_cast<double>(batch.values.size()) *
      static_cast<double>(seq.values.size()) * static_cast<double>(context.values.size()) *
      static_cast<double>(dtype.values.size()) * static_cast<double>(policies_of_a_cell());
  if (most > static_cast<double>(kMostLines)) {
    throw InputError(
        {.file = kCommandLine,
         .message = fmt::format("the grid is too large: {} models x {} GPUs x {} phases x {} "
                                "batches x {} seqs x {} contexts x {} dtypes x {} policies",
                                models.size(), gpus.size(), phases.size(), batch.values.size(),
                                seq.values.size(), context.values.size(), dtype.values.size(),
                                policies_of_a_cell()),
         .allowed = fmt::format("at most {} predictions", kMostLines)});
  }
  const bool mixed =
      phases.size() > 1 && std::find(phases.begin(), phases.end(), "decode") != phases.end();
  if (!mixed) {
    parts_.push_back({{{&Words::model, models},
                       {&Words::gpu, gpus},
                       {&Words::phase, phases},
                       batch,
                       seq,
                       context,
                       dtype}});
    return;
  }
  const Texts none = {std::nullopt};
  for (const auto& model : models)
    for (const auto& gpu : gpus)
      for (const auto& phase : phases) {
        const bool decode = phase == "decode";
        parts_.push_back({{{&Words::model, {model}},
                           {&Words::gpu, {gpu}},
                           {&Words::phase, {phase}},
                           batch,
                           {&Words::seq, decode ? none : seq.values},
                           {&Words::context, decode ? context.values : none},
                           dtype}});
      }
}

std::size_t SweepGrid::policies_of_a_cell() const {
  if (lists_.policy) return parse_list("--policy", *lists_.policy).size();
  return scenario_ ? scenario_->policies.size() : policies().size();
}

std::size_t SweepGrid::cells() const {
  std::size_t count = 0;
  for (const Part& part : parts_) count += part.cells();
  return count;
}

Selection SweepGrid::cell(std::size_t number) const {
  auto part = parts_.begin();
  while (number >= part->cells()) number -= (part++)->cells();
  SelectionWords words = lists_;
  for (auto d = part->dimensions.rbegin(); d != part->dimensions.rend(); ++d) {
    words.*(d->word) = d->values[number % d->values.size()];
    number /= d->values.size();
  }
  Selection cell = resolve_selection(scenario_, scenario_path_, words, *known_);
  if (price_) cell.price = parse_price(*price_, cell.layers);
  return cell;
}

std::vector<Selection> resolve_grid(const std::optional<std::string>& scenario_path,
                                    const SelectionWords& lists,
                                    const std::optional<std::string>& price) {
  const SweepGrid grid(scenario_path, lists, price);
  refuse_more_than(kMostPredictions, grid.cells());
  std::vector<Selection> cells;
  for (std::size_t i = 0; i < grid.cells(); ++i) cells.push_back(grid.cell(i));
  return cells;
}

SweptCase predict_cell(const Selection& cell) {
  SweptCase out{cell, {}};
  for (const std::string& policy : cell.policies)
    out.predictions.push_back(predict(plan_of(cell, policy), cell, nullptr));
  return out;
}

std::optional<std::vector<SweptCase>> predict_grid(
    const std::vector<Selection>& cells, const std::atomic<bool>* stop,
    const std::function<void(std::size_t done, std::size_t count)>& progress) {
  std::vector<Job> jobs;
  std::vector<SweptCase> out;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    out.push_back({cells[c], std::vector<Prediction>(cells[c].policies.size())});
    for (std::size_t p = 0; p < cells[c].policies.size(); ++p) jobs.push_back({c, p});
  }
  refuse_more_than(kMostPredictions, jobs.size());
  ParallelOptions parallel;
  parallel.stop = stop;
  parallel.progress = progress;
  const bool finished = parallel_for(
      jobs.size(),
      [&](std::size_t i) {
        const Selection& cell = cells[jobs[i].cell];
        const Plan plan = plan_of(cell, cell.policies[jobs[i].policy]);
        out[jobs[i].cell].predictions[jobs[i].policy] = predict(plan, cell, nullptr);
      },
      parallel);
  if (!finished) return std::nullopt;
  return out;
}

}  // namespace fuseline
