// fuseline search: the best plan of a block for an objective.
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/search_output.h"
#include "cli/selection.h"
#include "model/programs/program_file.h"
#include "sim/search/search_json.h"
#include "sim/selection/search_request.h"

namespace fuseline {

CommandResult search_command(const Arguments& args) {
  SelectionTexts texts;
  SearchWords words;
  std::vector<std::string> scenario;
  std::optional<std::string> format, output;
  Options options(
      "search",
      "The best plan of a block for an objective: what to fuse, how far the plan may be "
      "from the best there is, and which decisions mattered.",
      {"fuseline search --model llama3-8b --gpu h200 --phase decode --batch 8 "
       "--context 4096",
       "fuseline search --model llama2-7b --gpu h200 --phase train --output best.fuse",
       "fuseline search --model llama2-7b --gpu h200 --objective hbm --pareto time",
       "fuseline search --model llama2-7b --gpu h200 --keep-apart gate_up,swiglu"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  texts.add_image_to(options);
  options.text("--launch", "graph|stream", "by a CUDA graph, or one by one by the CPU (graph)",
               texts.launch);
  options.text("--objective", "NAME",
               "what to make small: time, hbm, launches, memory, energy (time)", words.objective);
  options.text("--pareto", "NAME", "also the plans that trade the objective for this one",
               words.pareto);
  options.text("--budget", "SECONDS", "how long to search; then the best so far (20)",
               words.budget);
  options.text("--keep-together", "A,B", "operators that share a kernel; more with a semicolon",
               words.keep_together);
  options.text("--keep-apart", "A,B", "operators that do not", words.keep_apart);
  options.text("--kernels", "own|any", "any: also one launch, and attention that rotates (own)",
               words.kernels);
  options.text("--distribution", "FILE.csv", "shapes that vary: batch, tokens, context, weight",
               words.distribution);
  options.text("--buckets", "K", "with it: how many plans serve all shapes (3)", words.buckets);
  options.text("--output", "FILE.fuse", "write the plan there", output);
  options.text("--format", "table|json", "what to print (table)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen = parse_word("--format", format.value_or("table"), {"table", "json"});
  if (output) check_writable(*output, "--output");
  const auto path = scenario.empty() ? std::nullopt : std::optional(scenario.front());
  const Selection s = resolve_selection(path, texts);
  SearchOptions how = search_options(s, path, words);
  const auto varying = distribution_request(words);
  if (varying && output)
    throw InputError({.file = kCommandLine,
                      .field = "--output",
                      .value = *output,
                      .message = "writes the plan of one shape",
                      .allowed = "without --distribution"});
  std::optional<SearchResult> result;
  std::optional<DistributionResult> of_shapes;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    how.stop = InterruptGuard::flag();
    how.progress = [&bar](const std::string& what, double done) { bar.show(what, done); };
    if (varying)
      of_shapes = search_distribution(s, varying->shapes, varying->buckets, how);
    else
      result = search_block(s, how);
  }
  if (of_shapes)
    return {chosen == "json" ? distribution_json(s, *of_shapes) : distribution_text(s, *of_shapes),
            of_shapes->stopped ? "fuseline: stopped; these are the best plans so far\n" : "",
            ExitStatus::done};
  std::string messages;
  if (result->stopped) messages = "fuseline: stopped; this is the best plan so far\n";
  if (output) {
    write_file_atomically(*output, plan_text(result->plan, s.gpu.name), "--output");
    messages += fmt::format("fuseline: written {}\n", *output);
  }
  return {chosen == "json" ? search_json(s, *result) : search_text(s, *result), messages,
          ExitStatus::done};
}

}  // namespace fuseline
