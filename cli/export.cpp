// fuseline export: a block's plan as kernels for other programs.
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/export_output.h"
#include "cli/long_work.h"
#include "cli/measure_output.h"
#include "cli/options.h"
#include "cli/selection.h"
#include "model/programs/program_file.h"

namespace fuseline {

namespace {

constexpr std::int64_t kMostExportedLayers = 128;

}  // namespace

CommandResult export_command(const Arguments& args) {
  SelectionTexts texts;
  std::optional<std::string> to, format, layers_text;
  std::vector<std::string> scenario;
  bool force = false;
  Options options("export",
                  "A block's plan as machine code with a launcher for C, a loader for Python and "
                  "custom operators of PyTorch, in a folder that is complete or absent.",
                  {"fuseline export --model llama2-7b --policy coda --gpu h200 --to block",
                   "fuseline export --model llama2-7b --policy coda --gpu h200 --phase train "
                   "--layers 2 --to trained"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", scenario, 1);
  texts.add_to(options);
  options.text("--layers", "N", "equal layers behind each other (2)", layers_text);
  options.text("--to", "FOLDER", "what is made", to);
  options.flag("--force", "replace an exported folder that is there", force);
  options.text("--format", "text|json", "what to print (text)", format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  const bool json = parse_word("--format", format.value_or("text"), {"text", "json"}) == "json";
  if (!to)
    throw InputError(
        {.file = kCommandLine, .field = "--to", .message = "is missing: the folder to make"});
  const std::int64_t layers =
      layers_text ? parse_whole_number("--layers", *layers_text, 1, kMostExportedLayers) : 2;
  if (!texts.policy && scenario.empty()) texts.policy = "coda";
  const Selection s =
      resolve_selection(scenario.empty() ? std::nullopt : std::optional(scenario.front()), texts);
  if (s.policies.size() != 1)
    throw InputError({.file = kCommandLine,
                      .field = "--policy",
                      .value = fmt::format("{}", fmt::join(s.policies, ",")),
                      .message = "are several: a folder has one plan"});
  check_export_folder(*to, force);
  const Plan plan = plan_of(s, s.policies.front());
  cuda::Exported e = run_long_work([&](const ShowProgress&) {
    return cuda::exported_block(plan, s.gpu, static_cast<int>(layers),
                                executor::available_threads());
  });
  e.name = fmt::format("{}_{}", s.model.name, name_of(s.workload.phase));
  e.hash = hash_of_text(plan_text(plan, s.gpu.name));
  e.checked =
      "not run by this command; `fuseline verify` executes the plan on the CPU against fp64, "
      "`fuseline measure` its kernels on the GPU";
  e.command = recorded_command(args, "export");
  write_export(e, *to, force);
  if (json) return {json_text(export_json_of(e, *to)), {}, ExitStatus::done};
  return {export_text_of(e, *to), {}, ExitStatus::done};
}

}  // namespace fuseline
