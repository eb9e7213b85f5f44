#include "sim/selection/grid.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "model/config/scenario.h"
#include "sim/selection/size_list.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostPredictions = 20'000;

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

struct Grid {
  Texts models, gpus, phases, batches, seqs, contexts, dtypes;
  bool mixed = false;  // decode beside other phases
};

Grid grid_of(const SelectionWords& t) {
  Grid g{named_values("--model", t.model),
         named_values("--gpu", t.gpu),
         named_values("--phase", t.phase),
         sizes("--batch", t.batch),
         sizes("--seq", t.seq),
         sizes("--context", t.context),
         named_values("--dtype", t.dtype),
         false};
  g.mixed = g.phases.size() > 1 &&
            std::find(g.phases.begin(), g.phases.end(), "decode") != g.phases.end();
  return g;
}

// Where decode stands beside other phases, --context is its list and --seq that of the others.
std::vector<SelectionWords> cells_of(const Grid& g, const SelectionWords& common) {
  std::vector<SelectionWords> out;
  const std::size_t most = g.models.size() * g.gpus.size() * g.phases.size() * g.batches.size() *
                           g.seqs.size() * g.contexts.size() * g.dtypes.size();
  if (most > kMostPredictions) {
    throw InputError(
        {.file = kCommandLine,
         .message = fmt::format("the grid is too large: {} models x {} GPUs x {} phases x {} "
                                "batches x {} seqs x {} contexts x {} dtypes",
                                g.models.size(), g.gpus.size(), g.phases.size(), g.batches.size(),
                                g.seqs.size(), g.contexts.size(), g.dtypes.size()),
         .allowed = fmt::format("at most {} predictions", kMostPredictions)});
  }
  const Texts none = {std::nullopt};
  for (const auto& model : g.models) {
    for (const auto& gpu : g.gpus) {
      for (const auto& phase : g.phases) {
        const bool decode = phase == "decode";
        for (const auto& batch : g.batches) {
          for (const auto& seq : g.mixed&& decode ? none : g.seqs) {
            for (const auto& context : g.mixed && !decode ? none : g.contexts) {
              for (const auto& dtype : g.dtypes) {
                SelectionWords cell = common;
                cell.model = model;
                cell.gpu = gpu;
                cell.phase = phase;
                cell.batch = batch;
                cell.seq = seq;
                cell.context = context;
                cell.dtype = dtype;
                out.push_back(std::move(cell));
              }
            }
          }
        }
      }
    }
  }
  return out;
}

struct Job {
  std::size_t cell = 0;
  std::size_t policy = 0;
};

}  // namespace

std::vector<Selection> resolve_grid(const std::optional<std::string>& scenario_path,
                                    const SelectionWords& lists,
                                    const std::optional<std::string>& price) {
  std::optional<Scenario> scenario;
  if (scenario_path) scenario = load_scenario(*scenario_path);
  std::vector<Selection> cells;
  for (const SelectionWords& cell : cells_of(grid_of(lists), lists)) {
    cells.push_back(resolve_selection(scenario, scenario_path, cell));
    if (price) cells.back().price = parse_price(*price, cells.back().layers);
  }
  return cells;
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
  if (jobs.size() > kMostPredictions) {
    throw InputError({.file = kCommandLine,
                      .message = fmt::format("the grid is too large: {} predictions", jobs.size()),
                      .allowed = fmt::format("at most {}", kMostPredictions)});
  }
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
