// fuseline verdict: fuse or not, for each edge of a block and for whole policies.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/verdict_output.h"
#include "sim/selection/verdict_request.h"
#include "sim/verdict/verdict_json.h"

namespace fuseline {

CommandResult verdict_command(const Arguments& args) {
  SelectionTexts texts;
  std::vector<std::string> scenario;
  std::optional<std::string> on, format, output;
  bool quick = false;
  Options options("verdict",
                  "Fuse or not: for each edge of a block and for whole policies the gain, how sure "
                  "it is, the size at which it turns, and what limits it.",
                  {"fuseline verdict --model llama3-8b --gpu h200",
                   "fuseline verdict --model llama3-8b --gpu a100-sxm-80gb --on coda",
                   "fuseline verdict --phase decode --batch 16 --context 8192 --format json"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  options.text("--on", "POLICY", "judge edges on top of this policy (per-operator)", on);
  options.flag("--quick", "without the sizes at which gains turn", quick);
  options.text("--format", "table|json|csv", "what to print (table)", format);
  options.text("--output", "FILE", "write there instead of standard output", output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const std::string chosen =
      parse_word("--format", format.value_or("table"), {"table", "json", "csv"});
  const Selection s =
      resolve_selection(scenario.empty() ? std::nullopt : std::optional(scenario.front()), texts);
  VerdictOptions how = verdict_options(
      s, scenario.empty() ? std::nullopt : std::optional(scenario.front()), on, quick);
  std::optional<BlockVerdict> verdict;
  {
    const InterruptGuard guard;
    ProgressBar bar;
    how.stop = InterruptGuard::flag();
    how.progress = [&bar](std::size_t done, std::size_t count) {
      bar.show(fmt::format("{} of {} plans and sizes", done, count),
               static_cast<double>(done) / static_cast<double>(count));
    };
    verdict = verdict_of_block(s, how);
  }
  if (!verdict) end_as_interrupted();
  std::string text = chosen == "json"  ? verdict_json(s, *verdict)
                     : chosen == "csv" ? verdict_csv(s, *verdict)
                                       : verdict_text(s, *verdict);
  if (!output) return {std::move(text), {}, ExitStatus::done};
  write_file_atomically(*output, text);
  return {{}, fmt::format("fuseline: written {}\n", *output), ExitStatus::done};
}

}  // namespace fuseline
