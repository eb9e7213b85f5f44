// fuseline measure: runs plans on the GPU of this machine.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/data_dir.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/instructions_output.h"
#include "cli/long_work.h"
#include "cli/measure_output.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/selection.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure.h"
#include "cuda/run/rival_turns.h"
#include "sim/measured/measurement_write.h"
#include "sim/measured/measuring_lines.h"

namespace fuseline {

namespace {

// Those whose kernels are all our own or the vendor's GEMMs, and cover the ladder of fusion.
constexpr const char* kDefaultPolicies = "unfused,per-operator,flash-attention,coda";
constexpr std::int64_t kMostReplays = 100'000;
constexpr std::int64_t kMostRounds = 100;

struct MeasureTexts {
  SelectionTexts selection;
  std::optional<std::string> replays, rounds, seed, threads, check, attention, format, output;
  std::optional<std::string> rivals, rival_command, plan, instructions;
  std::vector<std::string> scenario;
  bool no_counters = false, own_gemms = false, tune = false, ampere = false, kernels = false;
  bool extend = false, replace = false;
};

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &date);
  return text;
}

cuda::CheckSize check_size(const std::optional<std::string>& text) {
  const std::string word =
      parse_word("--check", text.value_or("auto"), {"auto", "full", "small", "none"});
  if (word == "full") return cuda::CheckSize::full;
  if (word == "small") return cuda::CheckSize::small;
  return word == "none" ? cuda::CheckSize::none : cuda::CheckSize::automatic;
}

// A script that lies in the same tree as the data files.
std::string own_rival_command(const std::string& name) {
  const std::filesystem::path script =
      (data_dir() / ".." / "cuda/rivals" / name).lexically_normal();
  std::error_code ignored;
  if (!std::filesystem::exists(script, ignored))
    throw MissingError(
        fmt::format("--rivals needs {}, which is not there; --rival-command names another program",
                    script.string()));
  std::string quoted;
  for (const char c : script.string()) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return "python3 '" + quoted + "'";
}

void choose_rivals(const MeasureTexts& texts, cuda::MeasureOptions& o) {
  if (!texts.rivals) {
    if (!texts.rival_command) return;
    throw InputError({.file = kCommandLine,
                      .field = "--rival-command",
                      .message = "starts nothing without --rivals",
                      .allowed = fmt::format("--rivals with some of {}",
                                             fmt::join(cuda::rival_executions(), ", "))});
  }
  for (const std::string& name : parse_list("--rivals", *texts.rivals))
    o.rivals.push_back(parse_word("--rivals", name, cuda::rival_executions()));
  o.rival_command = texts.rival_command.value_or("");  // empty: chosen by the model's block
}

cuda::MeasureOptions measure_options(const MeasureTexts& texts) {
  cuda::MeasureOptions o;
  const auto number = [](const char* option, const std::optional<std::string>& text,
                         std::int64_t least, std::int64_t most, std::int64_t otherwise) {
    return text ? parse_whole_number(option, *text, least, most) : otherwise;
  };
  o.workers.threads =
      static_cast<int>(number("--threads", texts.threads, 1, 1024, executor::available_threads()));
  o.workers.stop = InterruptGuard::flag();
  o.seed = static_cast<std::uint64_t>(
      number("--seed", texts.seed, 0, std::numeric_limits<std::int64_t>::max(), 1));
  o.replays = static_cast<int>(number("--replays", texts.replays, 1, kMostReplays, o.replays));
  o.rounds = static_cast<int>(number("--rounds", texts.rounds, 1, kMostRounds, o.rounds));
  o.counters = !texts.no_counters;
  o.library = !texts.own_gemms;
  o.tune = texts.tune;
  o.ampere = texts.ampere;
  o.overlap = parse_launching(texts.selection.launch.value_or(name_of(Launching::graph)),
                              {name_of(Launching::graph), name_of(Launching::overlap)}) ==
              Launching::overlap;
  if (o.overlap && o.ampere)
    throw InputError({.file = kCommandLine,
                      .field = "--launch",
                      .value = *texts.selection.launch,
                      .message = "is nothing that Ampere's kernels can do",
                      .allowed = "graph, or no --ampere"});
  o.check = check_size(texts.check);
  o.library_attention =
      parse_word("--attention", texts.attention.value_or("own"), {"own", "cudnn"}) == "cudnn";
  choose_rivals(texts, o);
  return o;
}

ExistingFolder existing_folder(const MeasureTexts& texts) {
  if (texts.extend && texts.replace)
    throw InputError({.file = kCommandLine,
                      .field = "--replace",
                      .message = "contradicts --extend",
                      .allowed = "one of the two"});
  if (texts.extend) return ExistingFolder::extend;
  return texts.replace ? ExistingFolder::replace : ExistingFolder::refuse;
}

Selection measure_selection(const MeasureTexts& texts) {
  SelectionTexts wanted = texts.selection;
  if (!wanted.policy && texts.scenario.empty()) wanted.policy = kDefaultPolicies;
  Selection s = resolve_selection(
      texts.scenario.empty() ? std::nullopt : std::optional(texts.scenario.front()), wanted);
  if (s.workload.dtype == Dtype::fp32)
    throw InputError({.file = kCommandLine,
                      .field = "--dtype",
                      .value = "fp32",
                      .message = "has no kernels: tensor cores multiply 16-bit operands",
                      .allowed = "bf16 or fp16"});
  if (texts.rivals && s.workload.dtype != Dtype::bf16)
    throw InputError({.file = kCommandLine,
                      .field = "--dtype",
                      .value = name_of(s.workload.dtype),
                      .message = "is not what rivals compute in",
                      .allowed = "bf16, or no --rivals"});
  return s;
}

// The plan of --plan, beside the policies that were named.
void add_plan(const std::string& file, const MeasureTexts& texts, Selection& s,
              cuda::MeasureOptions& measure) {
  if (!texts.selection.policy) s.policies.clear();
  SelectionTexts wanted = texts.selection;
  wanted.policy.reset();
  wanted.plan = file;
  const Selection with = resolve_selection(
      texts.scenario.empty() ? std::nullopt : std::optional(texts.scenario.front()), wanted);
  s.plan = with.plan;
  if (std::ranges::find(s.policies, s.plan->policy) != s.policies.end())
    throw InputError(
        {.file = kCommandLine,
         .field = "--plan",
         .value = file,
         .message = fmt::format("is a plan of policy {}, which --policy names too", s.plan->policy),
         .allowed = "other policies beside it"});
  if (measure.check == cuda::CheckSize::small)
    throw InputError({.file = kCommandLine,
                      .field = "--check",
                      .value = "small",
                      .message = "needs plans of other sizes, and the file has one of this size",
                      .allowed = "auto, full or none beside --plan"});
  measure.plan = std::make_shared<const Plan>(plan_of(s, s.plan->policy));
}

// What was measured, with when and how.
Measurements with_source(const cuda::GpuMeasurement& result, const Selection& selection,
                         const Arguments& args) {
  Measurements measurements = cuda::as_measurements(result, selection.gpu);
  measurements.meta.date = today();
  measurements.meta.version = version();
  measurements.meta.command = recorded_command(args);
  measurements.meta.clocks = "not locked; SM clock and power beside each time";
  return measurements;
}

// Each line at once: whoever reads them shows them.
void print_now(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void print_while_measuring(cuda::MeasureOptions& measure) {
  measure.progress = [](const std::string& what, double done) {
    print_now(progress_line(what, done));
  };
  measure.seen = [](const MeasuredBlock& block) { print_now(block_line(block)); };
}

CommandResult last_lines(const cuda::GpuMeasurement& result, const Selection& selection,
                         const Arguments& args) {
  if (result.passed())
    return {file_lines(with_source(result, selection, args)) + end_line(true, ""),
            {},
            ExitStatus::done};
  const std::string why = first_failure(result);
  return {end_line(false, why), "fuseline: measure failed: " + why + "\n",
          ExitStatus::check_failed};
}

}  // namespace

CommandResult measure_command(const Arguments& args) {
  MeasureTexts texts;
  Options options(
      "measure",
      "Runs plans as CUDA kernels on the GPU of this machine: checked against fp64, timed, "
      "counted; "
      "writes a folder that compare reads.",
      {"fuseline measure --model llama2-7b",
       "fuseline measure --model llama2-7b --phase decode --batch 16 --context 2048 --output here",
       "fuseline measure --model gpt2-xl --policy coda,eager --tune --kernels --no-counters",
       "fuseline measure --model llama2-7b --policy coda --rivals torch-compile --rounds 4",
       "fuseline measure --model llama2-7b --seq 700 --plan best.fuse --policy coda"});
  options.positional("SCENARIO.toml", "a scenario; options override what it says", texts.scenario,
                     1);
  texts.selection.add_to(options);
  options.text("--plan", "FILE.fuse", "a plan as text, beside the policies of --policy",
               texts.plan);
  options.text("--output", "FOLDER", "the measurement folder (measured-MODEL-PHASE)", texts.output);
  options.flag("--extend", "add to a folder that is there", texts.extend);
  options.flag("--replace", "replace a folder that is there", texts.replace);
  options.text("--replays", "N", "timed replays in a burst of each policy (20)", texts.replays);
  options.text("--rounds", "N", "bursts of each policy, in turns with the others (2)",
               texts.rounds);
  options.text("--rivals", "NAME,...",
               "PyTorch's eager, composed, torch-compile on the same block, in turns with ours",
               texts.rivals);
  options.text("--rival-command", "COMMAND",
               "what runs them (python3 with a script of cuda/rivals)", texts.rival_command);
  options.text("--check", "auto|full|small|none",
               "outputs against fp64 on this CPU: at the measured sizes, or at smaller ones",
               texts.check);
  options.text("--seed", "N", "of the random inputs (1)", texts.seed);
  options.text("--threads", "N", "threads of the check (all cores)", texts.threads);
  options.flag("--no-counters", "only times: no hardware counters", texts.no_counters);
  options.flag("--own-gemms", "our own GEMM also where a policy calls the vendor's library",
               texts.own_gemms);
  options.text("--attention", "own|cudnn",
               "cuDNN's attention where it can take the place of our own", texts.attention);
  options.text("--launch", "graph|overlap",
               "overlap: kernels of few rows begin before the last has ended",
               texts.selection.launch);
  options.flag("--ampere", "the Ampere kernels also on newer GPUs", texts.ampere);
  options.flag("--tune", "also time the other tiles of our own GEMMs", texts.tune);
  options.flag("--kernels", "print every kernel beside its prediction", texts.kernels);
  options.text("--instructions", "FILE.csv",
               "when whole-block's instructions ran, beside the prediction", texts.instructions);
  options.text("--format", "table|json|lines",
               "what to print (table); lines: as it comes, then the files, and no folder",
               texts.format);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};

  const std::string format =
      parse_word("--format", texts.format.value_or("table"), {"table", "json", "lines"});
  const bool lines = format == "lines";
  if (lines && texts.output)
    throw InputError({.file = kCommandLine,
                      .field = "--output",
                      .value = *texts.output,
                      .message = "is not written by --format lines, which prints the files",
                      .allowed = "one of the two"});
  cuda::MeasureOptions measure = measure_options(texts);
  Selection selection = measure_selection(texts);
  if (texts.rivals && measure.rival_command.empty())
    measure.rival_command = own_rival_command(cuda::rival_script(selection.model));
  if (texts.plan) add_plan(*texts.plan, texts, selection, measure);
  const std::filesystem::path folder = texts.output.value_or(
      fmt::format("measured-{}-{}", selection.model.name, name_of(selection.workload.phase)));
  if (!lines) check_measurement_folder(folder, existing_folder(texts));
  const cuda::DeviceInfo device = cuda::device_here();
  if (!texts.selection.gpu) selection.gpu = cuda::known_gpu(device);

  const cuda::GpuMeasurement result = run_long_work([&](const ShowProgress& show) {
    measure.progress = show;
    if (lines) print_while_measuring(measure);
    return cuda::measure(selection.model, selection.workload, selection.policies, selection.gpu,
                         measure);
  });

  if (texts.instructions) write_file_atomically(*texts.instructions, instructions_csv(result));
  if (lines) return last_lines(result, selection, args);
  std::string messages;
  const std::string text = format == "json" ? measurement_json(selection, result)
                                            : measurement_table(selection, result, texts.kernels);
  if (!result.passed()) {
    messages = "fuseline: measure failed, nothing was written: " + first_failure(result) + "\n";
    return {text, std::move(messages), ExitStatus::check_failed};
  }
  try {
    write_measurements(folder, with_source(result, selection, args), existing_folder(texts));
  } catch (const InputError& error) {
    // What was measured is still shown.
    messages = fmt::format("fuseline: error: {}\n", error.what());
    return {text, std::move(messages), ExitStatus::wrong_input};
  }
  messages = fmt::format("fuseline: written {}\n", folder.string());
  return {text, std::move(messages), ExitStatus::done};
}

}  // namespace fuseline
