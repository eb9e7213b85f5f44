// fuseline verify: executes plans on the CPU and judges them.
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cli/verify_output.h"

namespace fuseline {

namespace {

constexpr std::int64_t kVerifiedTokens = 128;

struct VerifyTexts {
  SelectionTexts selection;
  std::optional<std::string> layers, threads, seed, fault, memory_limit, format, output;
  std::optional<std::string> outliers, input_scale, input_shift, gradient_scale;
  std::vector<std::string> scenario;
  bool list_faults = false;
};

std::uint64_t parse_seed(const std::string& text) {
  return static_cast<std::uint64_t>(
      parse_whole_number("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
}

// "6G", "800M": powers of 1000.
Bytes parse_memory(const std::string& text) {
  std::int64_t unit = 1;
  std::string digits = text;
  const std::string units = "KMGT";
  const std::size_t found = digits.empty() ? std::string::npos : units.find(digits.back());
  if (found != std::string::npos) {
    digits.pop_back();
    for (std::size_t i = 0; i <= found; ++i) unit *= 1000;
  }
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() / unit;
  return Bytes(parse_whole_number("--memory-limit", digits, 1, most) * unit);
}

// A number, positive unless `any`.
double parse_number(const std::string& option, const std::string& text, bool any = false) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value) || (!any && value <= 0))
    throw InputError({.file = kCommandLine,
                      .field = option,
                      .value = text.empty() ? "\"\"" : text,
                      .message = any ? "is not a number" : "is not a positive number",
                      .allowed = any ? "a number, like -3 or 0.5" : "a number above 0, like 1e-3"});
  return value;
}

std::string fault_list() {
  std::string text;
  for (const executor::FaultInfo& f : executor::faults()) text += f.name + "\n";
  return text;
}

executor::VerifyOptions verify_options(const VerifyTexts& texts) {
  executor::VerifyOptions o;
  o.workers.threads =
      texts.threads
          ? static_cast<int>(parse_whole_number("--threads", *texts.threads, 1, kMostThreads))
          : executor::available_threads();
  o.workers.stop = InterruptGuard::flag();
  if (texts.seed) o.seed = parse_seed(*texts.seed);
  if (texts.fault) o.fault = executor::parse_fault(*texts.fault);
  if (texts.outliers) o.inputs.outliers = parse_number("--outliers", *texts.outliers);
  if (texts.input_scale) o.inputs.scale = parse_number("--input-scale", *texts.input_scale);
  if (texts.input_shift) o.inputs.shift = parse_number("--input-shift", *texts.input_shift, true);
  if (texts.gradient_scale)
    o.inputs.gradient_scale = parse_number("--gradient-scale", *texts.gradient_scale);
  if (texts.memory_limit) o.memory_limit = parse_memory(*texts.memory_limit);
  return o;
}

Selection verify_selection(VerifyTexts& texts) {
  if (texts.layers.value_or("1") != "1")
    throw InputError({.file = kCommandLine,
                      .field = "--layers",
                      .value = *texts.layers,
                      .message = "verify executes one block",
                      .allowed = "1"});
  const bool sized = texts.selection.seq || texts.selection.context;
  if (texts.scenario.empty() && !sized) {
    const bool decode = texts.selection.phase == "decode";
    (decode ? texts.selection.context : texts.selection.seq) = std::to_string(kVerifiedTokens);
  }
  return resolve_selection(
      texts.scenario.empty() ? std::nullopt : std::optional(texts.scenario.front()),
      texts.selection);
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
       "fuseline verify --model tinyllama --seq 32 --policy coda --break swapped-pair"});
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
  options.text("--format", "table|json", "what to print (table)", texts.format);
  options.text("--output", "FILE", "write there instead of standard output", texts.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (texts.list_faults) return {fault_list(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", texts.format.value_or("table"), {"table", "json"});
  executor::VerifyOptions verify = verify_options(texts);
  const Selection selection = verify_selection(texts);
  if (selection.plan) {
    (void)plan_of(selection, selection.plan->policy);  // refuses a plan of another block
    verify.plan = selection.plan;
  }

  const executor::Verification result = run_long_work([&](const ShowProgress& show) {
    verify.progress = show;
    return executor::verify(selection.model, selection.workload, selection.policies, selection.gpu,
                            verify);
  });

  const std::string text = format == "json" ? verification_json(selection, verify, result)
                                            : verification_table(selection, verify, result);
  const ExitStatus status = result.passed() ? ExitStatus::done : ExitStatus::check_failed;
  std::string messages;
  if (!result.passed()) messages = "fuseline: verify failed: " + first_failure(result) + "\n";
  if (!texts.output) return {text, std::move(messages), status};
  write_file_atomically(*texts.output, text);
  return {{}, messages + fmt::format("fuseline: written {}\n", *texts.output), status};
}

}  // namespace fuseline
