// fuseline program: what is right and wrong about a text of programs, and what it costs.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/format.h"
#include "base/json_text.h"
#include "cli/commands.h"
#include "cli/export_output.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/predict_table.h"
#include "cli/program_measure_output.h"
#include "cli/program_output.h"
#include "cli/selection.h"
#include "cuda/emit/plan_source.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure_programs.h"
#include "model/programs/gradient.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/unfused_programs.h"
#include "sim/programs/tile_check.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

const std::vector<std::string> kProgramVerbs = {"check",    "explain", "predict", "verify",
                                                "gradient", "cuda",    "measure", "export"};

constexpr std::int64_t kMostProgramReplays = 100'000;
constexpr std::int64_t kMostProgramRounds = 100;

struct ProgramOptions {
  std::optional<std::string> gpu, format, output, kernel, threads, seed, sizes, replays, rounds, to,
      of;
  std::vector<std::string> words;
  bool watch = false, no_counters = false, force = false;
};

// "M=64,D=128": sizes that take the place of the file's.
std::string with_sizes(const std::string& text, const std::optional<std::string>& sizes) {
  if (!sizes) return text;
  std::map<std::string, std::string> wanted;
  for (const std::string& part : parse_list("--size", *sizes)) {
    const std::vector<std::string> halves = split_list(part, '=');
    if (halves.size() != 2)
      throw InputError({.file = kCommandLine,
                        .field = "--size",
                        .value = part,
                        .message = "is no size",
                        .allowed = "LETTER=NUMBER, as M=64"});
    wanted[halves[0]] =
        std::to_string(parse_whole_number("--size", halves[1], 1, std::int64_t{1} << 32));
  }
  std::string out, used;
  std::set<std::string> known;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    std::string line = text.substr(begin, end - begin);
    if (line.starts_with("size ")) {
      std::string changed;
      for (const std::string& part : split_list(line.substr(5, line.find('#') - 5), ',')) {
        const std::vector<std::string> halves = split_list(part, '=');
        const bool there = halves.size() == 2 && wanted.contains(halves[0]);
        if (there) known.insert(halves[0]);
        changed += (changed.empty() ? "size " : ", ") +
                   (there ? halves[0] + " = " + wanted[halves[0]] : part);
      }
      line = changed;
    }
    out += line + (end < text.size() ? "\n" : "");
    begin = end + 1;
  }
  for (const auto& [letter, size] : wanted)
    if (!known.contains(letter))
      throw InputError({.file = kCommandLine,
                        .field = "--size",
                        .value = letter,
                        .message = "no line \"size\" of the file has this letter"});
  return out;
}

struct Checked {
  ProgramFile file;
  std::optional<Gpu> gpu;
  std::vector<Diagnosis> diagnoses;
};

// The GPU that programs are checked for: "here" is the one of this machine.
Gpu gpu_of(const ProgramFile& file, const ProgramOptions& o, bool measured) {
  if (measured ? o.gpu.value_or("here") == "here" : o.gpu == "here")
    return cuda::known_gpu(cuda::device_here());
  return load_gpu_option(o.gpu.value_or(file.target.empty() ? "h100" : file.target));
}

Checked checked_program(const std::string& verb, const std::string& path, const ProgramOptions& o) {
  Checked c{.file = read_program_file(path), .gpu = {}, .diagnoses = {}};
  if (o.sizes) c.file = read_program_text(with_sizes(c.file.source->text, o.sizes), path);
  c.diagnoses = check_programs(c.file);
  c.gpu = gpu_of(c.file, o, verb == "measure");
  if (!c.diagnoses.empty()) return c;
  for (Diagnosis& d : check_tiles(c.file, *c.gpu)) c.diagnoses.push_back(std::move(d));
  sort_by_line(c.diagnoses);
  return c;
}

// The result of a verb on a legal file.
struct Answer {
  std::string text;
  ordered_json json;
  ExitStatus status = ExitStatus::done;
};

cuda::ProgramMeasureOptions measure_options(const ProgramOptions& o) {
  cuda::ProgramMeasureOptions m;
  const auto number = [](const char* option, const std::optional<std::string>& text,
                         std::int64_t most, std::int64_t otherwise) {
    return text ? parse_whole_number(option, *text, 1, most) : otherwise;
  };
  m.workers.threads =
      static_cast<int>(number("--threads", o.threads, kMostThreads, executor::available_threads()));
  m.workers.stop = InterruptGuard::flag();
  m.seed = static_cast<std::uint64_t>(number("--seed", o.seed, std::int64_t{1} << 62, 1));
  m.replays = static_cast<int>(number("--replays", o.replays, kMostProgramReplays, m.replays));
  m.rounds = static_cast<int>(number("--rounds", o.rounds, kMostProgramRounds, m.rounds));
  m.counters = !o.no_counters;
  return m;
}

Answer measured_program(const Checked& c, const Plan& plan, const ProgramOptions& o) {
  cuda::ProgramMeasureOptions options = measure_options(o);
  const std::optional<Plan> unfused = unfused_programs(c.file);
  const cuda::ProgramMeasurement m = run_long_work([&](const ShowProgress& show) {
    options.progress = show;
    return cuda::measure_programs(plan, unfused ? &*unfused : nullptr, *c.gpu, options);
  });
  const PlanEstimate predicted = simulate(plan, *c.gpu, Fidelity::hierarchy);
  return {program_measurement_text(m, predicted, *c.gpu),
          program_measurement_json(m, predicted, *c.gpu),
          m.passed() ? ExitStatus::done : ExitStatus::check_failed};
}

Answer exported_file(const Checked& c, const Plan& plan, const ProgramOptions& o) {
  if (!o.to)
    throw InputError({.file = kCommandLine,
                      .field = "--to",
                      .message = "is missing: the folder that export makes"});
  check_export_folder(*o.to, o.force);
  cuda::Exported e = run_long_work([&](const ShowProgress&) {
    return cuda::exported_programs(plan, *c.gpu, executor::available_threads());
  });
  e.name = std::filesystem::path(c.file.source->file).stem().string();
  e.hash = hash_of_text(c.file.source->text);
  e.checked = fmt::format(
      "legal by every rule of `fuseline program check` on {}; not run: `fuseline program measure` "
      "checks results on the GPU",
      c.gpu->title);
  e.command = fmt::format("fuseline program export {} --gpu {}", c.file.source->file, c.gpu->name);
  write_export(e, *o.to, o.force);
  return {export_text_of(e, *o.to), export_json_of(e, *o.to)};
}

Answer answer_program(const std::string& verb, const Checked& c, const ProgramOptions& o) {
  const Gpu& gpu = *c.gpu;
  if (verb == "check") {
    std::size_t programs = 0;
    for (const Kernel& k : c.file.plan.kernels) programs += k.phases.size();
    return {fmt::format("{}: {} program{}, legal on {}\n", c.file.source->file, programs,
                        programs == 1 ? "" : "s", gpu.name),
            {{"programs", programs}}};
  }
  if (verb == "gradient") {
    const std::string text = gradient_text(
        gradient_of(c.file, o.of ? parse_list("--of", *o.of) : std::vector<std::string>{}),
        c.file.target);
    return {text, {{"text", text}}};
  }
  const Plan plan = whole_plan(c.file);
  if (verb == "explain") {
    const ProgramExplanation e = explain_programs(c.file, plan, gpu);
    return {program_explanation_text(e), program_explanation_json(e)};
  }
  if (verb == "predict") {
    const PlanEstimate estimate = simulate(plan, gpu, Fidelity::hierarchy);
    Answer answer{program_prediction_text(estimate, gpu), program_prediction_json(estimate, gpu)};
    if (const std::optional<Plan> unfused = unfused_programs(c.file)) {
      const PlanEstimate apart = simulate(*unfused, gpu, Fidelity::hierarchy);
      answer.text += unfused_prediction_text(estimate, apart);
      answer.json["unfused"] = unfused_prediction_json(estimate, apart);
    }
    return answer;
  }
  if (verb == "measure") return measured_program(c, plan, o);
  if (verb == "export") return exported_file(c, plan, o);
  if (verb == "verify") {
    executor::Workers workers;
    workers.threads =
        o.threads ? static_cast<int>(parse_whole_number("--threads", *o.threads, 1, kMostThreads))
                  : executor::available_threads();
    const auto seed = static_cast<std::uint64_t>(
        o.seed ? parse_whole_number("--seed", *o.seed, 0, std::int64_t{1} << 62) : 1);
    const VerifiedPrograms v = verify_programs(plan, gpu, seed, workers);
    return {program_verification_text(v), program_verification_json(v),
            v.passed() ? ExitStatus::done : ExitStatus::check_failed};
  }
  ordered_json sources = ordered_json::array();
  std::string text;
  for (const Kernel& kernel : plan.kernels) {
    if (o.kernel && kernel.name != *o.kernel) continue;
    for (const cuda::Source& s : cuda::kernel_sources(plan, kernel, gpu, cuda::target_of(gpu))) {
      text += (text.empty() ? "" : "\n") + s.text;
      sources.push_back({{"kernel", kernel.name}, {"text", s.text}});
    }
  }
  if (text.empty())
    throw InputError({.file = kCommandLine,
                      .field = "--kernel",
                      .value = o.kernel.value_or(""),
                      .message = "the file has no such program"});
  return {std::move(text), {{"sources", std::move(sources)}}};
}

CommandResult run_once(const std::string& verb, const std::string& path, const ProgramOptions& o,
                       bool json) {
  const Checked c = checked_program(verb, path, o);
  ordered_json out = {{"schema", "fuseline.program/1"},
                      {"verb", verb},
                      {"file", path},
                      {"gpu", c.gpu->name},
                      {"legal", c.diagnoses.empty()},
                      {"diagnoses", diagnoses_json(c.diagnoses)}};
  if (!c.diagnoses.empty()) {
    if (json) return {json_text(out), {}, ExitStatus::wrong_input};
    return {{}, diagnoses_text(c.diagnoses), ExitStatus::wrong_input};
  }
  Answer a = answer_program(verb, c, o);
  if (!json) return {std::move(a.text), {}, a.status};
  out.update(a.json);
  return {json_text(out), {}, a.status};
}

// Answers after each save, until Ctrl-C. The file is looked at twenty times a second.
CommandResult watch_program(const std::string& verb, const std::string& path,
                            const ProgramOptions& o, bool json) {
  const InterruptGuard guard;
  std::optional<std::filesystem::file_time_type> seen;
  while (!guard.flag()->load()) {
    std::error_code error;
    const auto now = std::filesystem::last_write_time(path, error);
    if (!error && (!seen || now != *seen)) {
      seen = now;
      CommandResult r;
      try {
        r = run_once(verb, path, o, json);
      } catch (const InputError& e) {
        r.messages = std::string("fuseline: error: ") + e.what() + "\n";
      } catch (const MissingError& e) {
        r.messages = std::string("fuseline: not available: ") + e.what() + "\n";
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
       "fuseline program check mine.fuse --watch",
       "fuseline program check mine.fuse --format json"});
  options.positional("VERB FILE", "what to do, and with which file", o.words, 2);
  options.words(kProgramVerbs);
  options.text("--gpu", "GPU", "on which (the file's target, else h100; measure: here)", o.gpu);
  options.text("--size", "L=N,...", "other sizes for the file's letters", o.sizes);
  options.text("--kernel", "NAME", "only this program (cuda)", o.kernel);
  options.text("--of", "NAMES", "gradients of these inputs and weights alone (gradient: all)",
               o.of);
  options.text("--threads", "N", "of the CPU (verify, measure)", o.threads);
  options.text("--seed", "N", "of the random inputs (verify; measure: of the first of three)",
               o.seed);
  options.text("--replays", "N", "timed replays in a burst (measure: 20)", o.replays);
  options.text("--rounds", "N", "bursts, in turns with the unfused plan (measure: 2)", o.rounds);
  options.flag("--no-counters", "only times: no hardware counters (measure)", o.no_counters);
  options.text("--to", "FOLDER", "what export makes: complete or absent", o.to);
  options.flag("--force", "replace an exported folder that is there (export)", o.force);
  options.flag("--watch", "answer again after every save, until Ctrl-C", o.watch);
  options.text("--format", "text|json", "json: one object with every diagnosis (text)", o.format);
  options.text("--output", "FILE", "write there instead of standard output", o.output);
  if (!options.parse(args)) return {options.help(), {}, ExitStatus::done};
  if (o.words.size() != 2)
    throw InputError(
        {.file = kCommandLine,
         .field = o.words.empty() ? "VERB" : "FILE.fuse",
         .message = "is missing",
         .allowed = "fuseline program check|explain|predict|verify|gradient|cuda|measure|export "
                    "FILE.fuse"});
  const std::string verb = parse_word("VERB", o.words[0], kProgramVerbs);
  const bool json = parse_word("--format", o.format.value_or("text"), {"text", "json"}) == "json";
  if (o.watch) return watch_program(verb, o.words[1], o, json);
  CommandResult result = run_once(verb, o.words[1], o, json);
  if (!o.output || result.output.empty()) return result;
  write_file_atomically(*o.output, result.output);
  return {{}, fmt::format("fuseline: written {}\n", *o.output), result.status};
}

}  // namespace fuseline
