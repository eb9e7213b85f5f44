// fuseline program: what is right and wrong about a text of programs, and what it costs.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/program_many.h"
#include "cli/program_verbs.h"

namespace fuseline {

namespace {

const std::vector<std::string> kProgramVerbs = {"check",    "explain", "predict", "verify",
                                                "gradient", "cuda",    "measure", "export"};
const std::vector<std::string> kManyVerbs = {"check", "predict", "verify"};

constexpr std::size_t kMostProgramFiles = 1'000'000;

CommandResult run_once(const std::string& verb, const std::string& path, const ProgramOptions& o,
                       bool json, LoadedGpus& gpus) {
  ProgramAnswer a = answer_program(verb, path, o, gpus);
  if (json) return {json_text(a.json), {}, a.status};
  return {std::move(a.text), std::move(a.mistakes), a.status};
}

// Answers after each save, until Ctrl-C, and once where the file is not there. The file is looked
// at twenty times a second.
CommandResult watch_program(const std::string& verb, const std::string& path,
                            const ProgramOptions& o, bool json) {
  const InterruptGuard guard;
  StillWorking::hush();  // it waits for a person
  LoadedGpus gpus;
  std::optional<std::filesystem::file_time_type> seen;  // nothing: it is not there
  bool answered = false, gone = false;
  while (!guard.flag()->load()) {
    std::error_code error;
    const auto saved = std::filesystem::last_write_time(path, error);
    // Some editors move the old file away before they write the new one.
    const bool just_gone = error && answered && !gone;
    gone = static_cast<bool>(error);
    const auto now = gone ? std::nullopt : std::optional(saved);
    if (!answered || (seen != now && !just_gone)) {
      answered = true;
      seen = now;
      CommandResult r;
      const auto no_answer = [&](const char* what, const char* why) {
        if (json)
          r.output = json_text(no_answer_json(verb, path, why));
        else
          r.messages = fmt::format("fuseline: {}: {}\n", what, why);
      };
      try {
        r = run_once(verb, path, o, json, gpus);
      } catch (const InputError& e) {
        no_answer("error", e.what());
      } catch (const MissingError& e) {
        no_answer("not available", e.what());
      }
      std::cout << r.output << r.messages << std::flush;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return {};
}

}  // namespace

CommandResult program_command(const Arguments& args) {
  ProgramOptions o;
  Options options(
      "program",
      "Programs as text (*.fuse).\n"
      "  check    every mistake, with its rule and line\n"
      "  explain  tile, registers, shared memory, what each line moves\n"
      "  predict  time with its band, bound and limits\n"
      "  verify   executes it on the CPU, against fp64\n"
      "  gradient the programs that hand its gradient back, as such a file\n"
      "  cuda     the source of its kernels\n"
      "  measure  on the GPU here: checked, timed, counted, judged, in turns with the\n"
      "           same maths without fusion\n"
      "  export   machine code, launcher and loader in a folder of its own",
      {"fuseline program check scenarios/programs/geglu-fp8.fuse",
       "fuseline program predict scenarios/programs/geglu-fp8.fuse --gpu h200",
       "fuseline program verify scenarios/programs/norm-router.fuse --size M=64",
       "fuseline program gradient docs/handbook/swish.fuse --output d_swish.fuse",
       "fuseline program measure scenarios/programs/geglu-fp8.fuse",
       "fuseline program export scenarios/programs/geglu-fp8.fuse --gpu h200 --to geglu",
       "fuseline program predict scenarios/programs --gpu h200 --format json",
       "fuseline program check mine.fuse --watch",
       "fuseline program check mine.fuse --format json"});
  options.positional("VERB FILE...",
                     "what to do, and with which file\n"
                     "(check, predict, verify: files, and folders of *.fuse)",
                     o.words, kMostProgramFiles);
  options.words(kProgramVerbs);
  options.text("--gpu", "GPU", "on which (the file's target, else h100; measure: here)", o.gpu);
  options.text("--size", "L=N,...", "other sizes for the file's letters", o.sizes);
  options.text("--kernel", "NAME", "only this program (cuda)", o.kernel);
  options.text("--of", "NAMES", "gradients of these inputs and weights (gradient, export: all)",
               o.of);
  options.text("--kept", "FILE",
               "gradient: loads kept tiles, and writes the programs that keep them", o.kept);
  options.text("--threads", "N", "of the CPU (verify, measure; several files)", o.threads);
  options.text("--seed", "N", "of the random inputs (verify; measure: of the first of three)",
               o.seed);
  options.text("--replays", "N", "timed replays in a burst (measure: 20)", o.replays);
  options.text("--rounds", "N", "bursts, in turns with the unfused plan (measure: 2)", o.rounds);
  options.flag("--no-counters", "only times: no hardware counters (measure)", o.no_counters);
  options.text("--to", "FOLDER", "what export makes: complete or absent", o.to);
  options.flag("--force", "replace an exported folder that is there (export)", o.force);
  options.flag("--watch", "answer again after every save, until Ctrl-C", o.watch);
  options.text("--format", "text|json",
               "json: one object with every diagnosis, a line for each file (text)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (o.words.size() < 2)
    throw InputError(
        {.file = kCommandLine,
         .field = o.words.empty() ? "VERB" : "FILE.fuse",
         .message = "is missing",
         .allowed = "fuseline program check|explain|predict|verify|gradient|cuda|measure|export "
                    "FILE.fuse"});
  const std::string verb = parse_word("VERB", o.words[0], kProgramVerbs);
  const bool json = parse_word("--format", o.format.value_or("text"), {"text", "json"}) == "json";
  o.form = json ? AnswerForm::json : AnswerForm::text;
  const bool many =
      o.words.size() > 2 || (o.words.size() == 2 && std::filesystem::is_directory(o.words[1]));
  if (many && (o.watch || std::ranges::find(kManyVerbs, verb) == kManyVerbs.end()))
    throw InputError({.file = kCommandLine,
                      .field = o.watch ? "--watch" : verb,
                      .value = o.words.back(),
                      .message = "takes one file",
                      .allowed = fmt::format("one FILE.fuse; {}: several files, and folders",
                                             fmt::join(kManyVerbs, ", "))});
  if (o.watch) return watch_program(verb, o.words[1], o, json);
  LoadedGpus gpus;
  CommandResult result = many ? answer_programs(verb, {o.words.begin() + 1, o.words.end()}, o, json)
                              : run_once(verb, o.words[1], o, json, gpus);
  if (!o.output || result.output.empty()) return result;
  write_file_atomically(*o.output, result.output);
  return {{}, result.messages + fmt::format("fuseline: written {}\n", *o.output), result.status};
}

}  // namespace fuseline
