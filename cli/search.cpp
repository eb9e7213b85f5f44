// fuseline search: the best plan of a block for an objective.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/distribution_output.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/search_formats.h"
#include "cli/search_output.h"
#include "cli/selection.h"
#include "cli/shared_run.h"
#include "model/programs/program_file.h"
#include "sim/search/search_json.h"
#include "sim/selection/search_request.h"

namespace fuseline {

namespace {

[[noreturn]] void refuse_plot(const std::string& plot) {
  throw InputError({.file = kCommandLine,
                    .field = "--plot",
                    .value = plot,
                    .message = "draws shapes that vary",
                    .allowed = "with --distribution FILE|NAME"});
}

CommandResult searched(const Arguments& args) {
  SelectionTexts texts;
  SearchWords words;
  FormatWords formats;
  std::vector<std::string> scenario;
  std::optional<std::string> format, output, plot;
  bool resume = false;
  Options options(
      "search",
      "The best plan of a block for an objective: what to fuse, how far the plan may be "
      "from the best there is, and which decisions mattered.",
      {"fuseline search --model llama3-8b --gpu h200 --phase decode --batch 8 "
       "--context 4096",
       "fuseline search --model llama2-7b --gpu h200 --phase train --output best.fuse",
       "fuseline search --model llama2-7b --gpu h200 --objective hbm --pareto time",
       "fuseline search --model llama2-7b --gpu h200 --keep-apart gate_up,swiglu",
       "fuseline search --model llama3-8b --gpu h200 --distribution azure-conversation",
       "mpirun -n 4 fuseline search --model llama2-7b --gpu h200 --phase train --budget 600"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  texts.add_image_to(options);
  options.text("--launch", "graph|overlap|stream",
               "in a CUDA graph, overlapping there, or one by one from the CPU", texts.launch);
  options.text("--objective", "NAME",
               "what to make small: time, hbm, launches, memory, energy (time)", words.objective);
  options.text("--pareto", "NAME", "also the plans that trade the objective for this one",
               words.pareto);
  options.text("--budget", "SECONDS", "how long to search; then the best so far (20)",
               words.budget);
  options.text("--keep-together", "A,B", "operators that share a kernel; more with a semicolon",
               words.keep_together);
  options.text("--keep-apart", "A,B", "operators that do not", words.keep_apart);
  options.text(
      "--kernels", "own|chains|any",
      "chains: also two products in one kernel; any: one launch, attention that rotates too "
      "(own)",
      words.kernels);
  options.text("--formats", "NAME,...", "the best of these formats of the weights: bf16,int4:128",
               formats.formats);
  options.text("--error-budget", "E", "with it: the largest relative error of the block's results",
               formats.error_budget);
  options.text("--distribution", "FILE|NAME",
               "sizes that vary: requests or shapes (list distributions)", words.distribution);
  options.text("--buckets", "K", "with it: ranges of sizes that share a plan (3)", words.buckets);
  options.text("--sizes", "N", "with it: into how many sizes requests are gathered (12)",
               words.sizes);
  options.text("--calls", "N", "with it: calls that share the compiling (as counted, or 100,000)",
               words.calls);
  options.text("--compile-seconds", "S", "with it: time to compile one kernel (0.9)",
               words.compile_seconds);
  options.text("--cached-plans", "N",
               "with it: plans kept where each size is compiled for itself (64)",
               words.cached_plans);
  options.text("--page", "N", "with a CSV of sequences: caches in pages of so many tokens",
               words.page);
  options.text("--plot", "FILE.svg", "with it: mean time over the number of buckets", plot);
  options.text("--output", "FILE.fuse", "write the plan there", output);
  options.flag("--resume", "go on with what an unfinished search into --output left behind",
               resume);
  options.text("--format", "table|json", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen = parse_word("--format", format.value_or("table"), {"table", "json"});
  SharedRun run("search", args, output, resume);
  const auto path = scenario.empty() ? std::nullopt : std::optional(scenario.front());
  if (formats.formats || formats.error_budget) {
    if (plot) refuse_plot(*plot);
    const FormatAnswer answer = search_formats(path, texts, words, formats, run);
    if (!run.first()) return {};
    std::string said;
    if (output) {
      write_file_atomically(
          *output,
          plan_text(answer.search.plans[*answer.search.best].found.plan, answer.selection.gpu.name),
          "--output");
      run.done();
      said = fmt::format("fuseline: written {}\n", *output);
    }
    return {chosen == "json" ? formats_json(answer) : formats_text(answer), said, ExitStatus::done};
  }
  leave_sizes_to_distribution(words, texts);
  const Selection s = resolve_selection(path, texts);
  SearchOptions how = search_options(s, path, words);
  const auto varying = distribution_request(s, words);
  if (varying && output)
    throw InputError({.file = kCommandLine,
                      .field = "--output",
                      .value = *output,
                      .message = "writes the plan of one shape",
                      .allowed = "without --distribution"});
  if (plot && !varying) refuse_plot(*plot);
  if (plot && run.first()) check_writable(*plot, "--plot");
  std::optional<SearchResult> result;
  std::optional<DistributionResult> of_shapes;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    how.stop = InterruptGuard::flag();
    how.sharing = &run.sharing();
    if (run.first())
      how.progress = [&bar](const std::string& what, double done) { bar.show(what, done); };
    if (varying)
      of_shapes = search_distribution(s, varying->sizes, varying->options, how);
    else
      result = search_block(s, how);
  }
  if (!run.first()) return {};
  if (of_shapes) {
    std::string said =
        of_shapes->stopped ? "fuseline: stopped; these are the best plans so far\n" : "";
    if (plot) {
      write_file_atomically(*plot, draw_distribution(s, *of_shapes).file(), "--plot");
      said += fmt::format("fuseline: written {}\n", *plot);
    }
    return {chosen == "json" ? distribution_json(s, varying->distribution, *of_shapes)
                             : distribution_text(s, varying->distribution, *of_shapes),
            said, ExitStatus::done};
  }
  std::string messages;
  if (result->stopped) messages = "fuseline: stopped; this is the best plan so far\n";
  if (output) {
    write_file_atomically(*output, plan_text(result->plan, s.gpu.name), "--output");
    run.done();
    messages += fmt::format("fuseline: written {}\n", *output);
  }
  return {chosen == "json" ? search_json(s, *result) : search_text(s, *result), messages,
          ExitStatus::done};
}

}  // namespace

CommandResult search_command(const Arguments& args) {
  return one_rank_speaks([&] { return searched(args); });
}

}  // namespace fuseline
