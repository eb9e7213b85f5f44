// fuseline sweep: a grid of predictions.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel_for.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/size_list.h"
#include "sim/report/json_output.h"
#include "sim/report/predict_csv.h"

namespace fuseline {

namespace {

constexpr std::size_t kMostPredictions = 20'000;

struct SweepOptions {
  SelectionTexts lists;  // as given
  std::optional<std::string> price, format, output;
  std::vector<std::string> scenario;
};

// One value where the option was not given: what the scenario or the defaults say.
using Texts = std::vector<std::optional<std::string>>;

Texts names(const char* option, const std::optional<std::string>& text) {
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

Grid grid_of(const SelectionTexts& t) {
  Grid g{names("--model", t.model), names("--gpu", t.gpu),
         names("--phase", t.phase), sizes("--batch", t.batch),
         sizes("--seq", t.seq),     sizes("--context", t.context),
         names("--dtype", t.dtype), false};
  g.mixed = g.phases.size() > 1 &&
            std::find(g.phases.begin(), g.phases.end(), "decode") != g.phases.end();
  return g;
}

// Where decode stands beside other phases, --context is its list and --seq that of the others.
std::vector<SelectionTexts> cells_of(const Grid& g, const SelectionTexts& common) {
  std::vector<SelectionTexts> out;
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
                SelectionTexts cell = common;
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

// All cells' predictions in the order of the cells; empty when it was stopped.
std::optional<std::vector<SweptCase>> predict_all(const std::vector<Selection>& cells) {
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
  const InterruptGuard guard;
  ProgressBar bar;
  ParallelOptions parallel;
  parallel.stop = InterruptGuard::flag();
  parallel.progress = [&bar](std::size_t done, std::size_t count) {
    bar.show(fmt::format("{} of {} predictions", done, count),
             static_cast<double>(done) / static_cast<double>(count));
  };
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

}  // namespace

CommandResult sweep_command(const Arguments& args) {
  SweepOptions o;
  Options options("sweep",
                  "A grid of predictions, in parallel: every combination of the lists. Sizes also "
                  "take ranges, first:last:xF or first:last:+D. Beside other phases, decode takes "
                  "--context and the others --seq.",
                  {"fuseline sweep --gpu h100,h200 --batch 1,2,4 --policy eager,coda > out.csv",
                   "fuseline sweep --phase decode --context 2048:16384:x2 --policy eager,coda",
                   "fuseline sweep --model llama2-7b,llama3-8b --seq 512:2048:+512 --format json"});
  options.positional("SCENARIO.toml", "what the lists leave open", o.scenario, 1);
  o.lists.add_to(options);
  o.lists.add_plan_to(options);
  o.lists.add_simulation_to(options);
  options.text("--price-per-hour", "X", "of a GPU; with --layers all: cost per million tokens",
               o.price);
  options.text("--format", "csv|json", "what to print (csv)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format = parse_word("--format", o.format.value_or("csv"), {"csv", "json"});
  std::optional<std::string> path;
  std::optional<Scenario> scenario;
  if (!o.scenario.empty()) scenario = load_scenario(*(path = o.scenario.front()));
  std::vector<Selection> cells;
  for (const SelectionTexts& cell : cells_of(grid_of(o.lists), o.lists)) {
    cells.push_back(resolve_selection(scenario, path, cell));
    if (o.price) cells.back().price = parse_price(*o.price, cells.back().layers);
  }
  const auto swept = predict_all(cells);
  if (!swept) end_as_interrupted();

  std::string text = format == "json" ? sweep_json(*swept) : predictions_csv_header();
  if (format == "csv") {
    for (const SweptCase& c : *swept) text += predictions_csv_rows(c.what, c.predictions);
  }
  if (!o.output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*o.output, text);
  return {{}, fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
}

}  // namespace fuseline
