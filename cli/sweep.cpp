// fuseline sweep: a grid of predictions.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/sqlite_table.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/shared_run.h"
#include "cli/sweep_lines.h"
#include "sim/ranks/ranks.h"
#include "sim/report/json_output.h"
#include "sim/report/predict_csv.h"
#include "sim/report/prediction_charts.h"
#include "sim/selection/grid.h"

namespace fuseline {

namespace {

struct SweepOptions {
  SelectionTexts lists;  // as given
  std::optional<std::string> price, format, output, plot;
  std::vector<std::string> scenario;
  bool resume = false;
};

std::optional<std::string> scenario_of(const SweepOptions& o) {
  return o.scenario.empty() ? std::nullopt : std::optional(o.scenario.front());
}

CommandResult swept(const Arguments& args) {
  SweepOptions o;
  Options options(
      "sweep",
      "A grid of predictions, in parallel: every combination of the lists. Sizes also "
      "take ranges, first:last:xF or first:last:+D. Beside other phases, decode takes "
      "--context and the others --seq.",
      {"fuseline sweep --gpu h100,h200 --batch 1,2,4 --policy eager,coda > out.csv",
       "fuseline sweep --phase decode --context 2048:16384:x2 --policy eager,coda",
       "fuseline sweep --model llama2-7b,llama3-8b --seq 512:2048:+512 --format json",
       "mpirun -n 4 fuseline sweep --batch 1:64:+1 --seq 64:8192:+64 --output out.csv"});
  options.positional("SCENARIO.toml", "what the lists leave open", o.scenario, 1);
  o.lists.add_to(options);
  o.lists.add_plan_to(options);
  o.lists.add_simulation_to(options);
  options.text("--price-per-hour", "X", "of a GPU; with --layers all: cost per million tokens",
               o.price);
  options.text("--format", "csv|json", "what to print (csv)", o.format);
  options.text(
      "--output", "FILE",
      "write there instead of standard output; as a table of SQLite where the name ends in .sqlite",
      o.output);
  options.flag("--resume", "go on with what an unfinished sweep into --output left behind",
               o.resume);
  options.text("--plot", "FILE.svg", "also a drawing: time over the size that varies", o.plot);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format = parse_word("--format", o.format.value_or("csv"), {"csv", "json"});
  const bool lines = format == "csv" && !o.plot;
  if (o.resume && (!o.output || !lines))
    throw InputError({.file = kCommandLine,
                      .field = "--resume",
                      .message = "goes on with lines in a file",
                      .allowed = "with --output FILE, without --plot and --format json"});
  if (o.output && named_as_sqlite(*o.output) && !lines)
    throw InputError({.file = kCommandLine,
                      .field = "--output",
                      .value = *o.output,
                      .message = "is a table of SQLite by its name, which holds the lines of a CSV",
                      .allowed = "--format csv without --plot, or another name"});
  if (Ranks::started_together() && !lines)
    throw InputError({.file = kCommandLine,
                      .field = o.plot ? "--plot" : "--format",
                      .value = o.plot.value_or(format),
                      .message = "is not made by several ranks",
                      .allowed = "--format csv without --plot, or one process"});
  if (lines)
    return sweep_lines(SweepGrid(scenario_of(o), o.lists, o.price),
                       {.output = o.output, .resume = o.resume, .asked = asked_for(args)});
  const std::vector<Selection> cells = resolve_grid(scenario_of(o), o.lists, o.price);
  if (o.plot) check_writable(*o.plot, "--plot");
  std::optional<std::vector<SweptCase>> cases;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    cases =
        predict_grid(cells, InterruptGuard::flag(), [&bar](std::size_t done, std::size_t count) {
          bar.show(fmt::format("{} of {} predictions", done, count),
                   static_cast<double>(done) / static_cast<double>(count));
        });
  }
  if (!cases) end_as_interrupted();

  std::string text = format == "json" ? sweep_json(*cases) : predictions_csv_header();
  if (format == "csv") {
    for (const SweptCase& c : *cases) text += predictions_csv_rows(c.what, c.predictions);
  }
  std::string messages;
  if (o.plot) {
    write_file_atomically(*o.plot, draw_sweep(*cases).file(), "--plot");
    messages += fmt::format("fuseline: written {}\n", *o.plot);
  }
  if (!o.output) return {std::move(text), std::move(messages), ExitStatus::done};
  write_file_atomically(*o.output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *o.output), ExitStatus::done};
}

}  // namespace

CommandResult sweep_command(const Arguments& args) {
  return one_rank_speaks([&] { return swept(args); });
}

}  // namespace fuseline
