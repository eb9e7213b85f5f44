// fuseline verify: executes plans on the CPU and judges them.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/verify_blocks.h"
#include "cli/verify_output.h"
#include "sim/executor/verification_json.h"
#include "sim/selection/verify_request.h"

namespace fuseline {

namespace {

struct VerifyTexts : VerifyWords {
  SelectionTexts selection;
  std::optional<std::string> format, output;
  std::vector<std::string> scenario;
  bool list_faults = false;
  bool all_blocks = false;
};

std::string fault_list() {
  std::string text;
  for (const executor::FaultInfo& f : executor::faults()) text += f.name + "\n";
  return text;
}

}  // namespace

CommandResult verify_command(const Arguments& args) {
  VerifyTexts texts;
  Options options(
      "verify",
      "Executes plans on the CPU, tile by tile: errors against fp64 and against unfused execution, "
      "bytes touched against the prediction.",
      {"fuseline verify --model tinyllama --seq 32",
       "fuseline verify --model llama2-7b --seq 256 --policy unfused,torch-compile,coda",
       "fuseline verify --model llama2-7b --phase train --policy unfused,coda",
       "fuseline verify --model gpt2-xl --phase decode --context 512 --dtype fp16",
       "fuseline verify --model tinyllama --seq 32 --policy coda --break swapped-pair",
       "fuseline verify --all-blocks --block mla --policy eager,coda"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", texts.scenario,
                     1);
  texts.selection.add_to(options);
  texts.selection.add_plan_to(options);
  options.text("--layers", "1", "verify executes one block", texts.layers);
  options.text("--threads", "N", "threads (all cores); results do not depend on them",
               texts.threads);
  options.text("--seed", "N", "of the random inputs (1)", texts.seed);
  options.text("--outliers", "F", "one column in twenty of x and dy is so many times larger (20)",
               texts.outliers);
  options.text("--input-scale", "S", "x, the residual stream, is S times normal numbers (1)",
               texts.input_scale);
  options.text("--input-shift", "M", "added to these before scaling: the mean of x (0)",
               texts.input_shift);
  options.text("--gradient-scale", "S", "dy, the gradient that arrives, is S times normal (1)",
               texts.gradient_scale);
  options.text("--memory-limit", "N|NG|NM", "bytes it may use (what the machine has left)",
               texts.memory_limit);
  options.text("--break", "NAME", "puts a fault into the plans, which must then fail", texts.fault);
  options.flag("--list-breaks", "prints the names of the faults", texts.list_faults);
  options.flag("--all-blocks", "every shipped block at small sizes, in all phases and formats",
               texts.all_blocks);
  options.text("--format", "table|json", "what to print (table)", texts.format);
  options.text("--output", "FILE", "write there instead of standard output", texts.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (texts.list_faults) return {fault_list(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", texts.format.value_or("table"), {"table", "json"});
  executor::VerifyOptions verify = verify_options(texts);
  verify.workers.stop = InterruptGuard::flag();
  if (texts.all_blocks && (texts.fault || texts.layers || texts.output || format == "json"))
    throw InputError({.file = kCommandLine,
                      .field = "--all-blocks",
                      .message = "prints a table of blocks, to standard output",
                      .allowed = "without --break, --layers, --output and --format json"});
  if (texts.all_blocks)
    return verify_all_blocks(
        texts.selection,
        texts.scenario.empty() ? std::nullopt : std::optional(texts.scenario.front()),
        std::move(verify));
  const Selection selection = verify_selection(
      texts.scenario.empty() ? std::nullopt : std::optional(texts.scenario.front()),
      texts.selection, texts);
  if (selection.plan) {
    (void)plan_of(selection, selection.plan->policy);  // refuses a plan of another block
    verify.plan = selection.plan;
  }

  const executor::Verification result = run_long_work([&](const ShowProgress& show) {
    verify.progress = show;
    return executor::verify(selection.model, selection.workload, selection.policies, selection.gpu,
                            verify);
  });

  const std::string text = format == "json"
                               ? executor::verification_json(selection.model, selection.workload,
                                                             selection.gpu, verify, result)
                               : verification_table(selection, verify, result);
  const ExitStatus status = result.passed() ? ExitStatus::done : ExitStatus::check_failed;
  std::string messages;
  if (!result.passed()) messages = "fuseline: verify failed: " + first_failure(result) + "\n";
  if (!texts.output) return {text, std::move(messages), status};
  write_file_atomically(*texts.output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *texts.output), status};
}

}  // namespace fuseline
