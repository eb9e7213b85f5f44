#include "cli/program_verbs.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/export_output.h"
#include "cli/long_work.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/program_measure_output.h"
#include "cli/program_output.h"
#include "cli/selection.h"
#include "cuda/emit/plan_source.h"
#include "cuda/run/known_gpu.h"
#include "cuda/run/measure_programs.h"
#include "model/programs/gradient.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "model/programs/unfused_programs.h"
#include "sim/programs/checked_file.h"
#include "sim/programs/program_json.h"
#include "sim/programs/verify_programs.h"

namespace fuseline {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostProgramReplays = 100'000;
constexpr std::int64_t kMostProgramRounds = 100;

// "M=64,D=128": sizes that take the place of the file's.
ProgramFile with_said_sizes(const ProgramFile& file, const std::string& sizes) {
  std::map<std::string, std::int64_t> wanted;
  for (const std::string& part : parse_list("--size", sizes)) {
    const std::vector<std::string> halves = split_list(part, '=');
    if (halves.size() != 2)
      throw InputError({.file = kCommandLine,
                        .field = "--size",
                        .value = part,
                        .message = "is no size",
                        .allowed = "LETTER=NUMBER, as M=64"});
    wanted[halves[0]] = parse_whole_number("--size", halves[1], 1, kLargestSize);
  }
  return with_sizes(file, wanted, {.file = kCommandLine, .field = "--size"});
}

struct Checked {
  ProgramFile file;
  std::shared_ptr<const Gpu> gpu;
  std::vector<Diagnosis> diagnoses;
};

// The GPU that programs are checked for: "here" is the one of this machine.
std::shared_ptr<const Gpu> gpu_of(const ProgramFile& file, const ProgramOptions& o, bool measured,
                                  LoadedGpus& gpus) {
  if (measured ? o.gpu.value_or("here") == "here" : o.gpu == "here")
    return std::make_shared<const Gpu>(cuda::known_gpu(cuda::device_here()));
  return gpus.load(o.gpu.value_or(file.target.empty() ? "h100" : file.target));
}

Checked checked_program(const std::string& verb, const std::string& path, const ProgramOptions& o,
                        LoadedGpus& gpus) {
  Checked c{.file = read_program_file(path), .gpu = {}, .diagnoses = {}};
  if (o.sizes) c.file = with_said_sizes(c.file, *o.sizes);
  c.gpu = gpu_of(c.file, o, verb == "measure", gpus);
  c.diagnoses = mistakes_on(c.file, *c.gpu);
  return c;
}

// The result of a verb on a legal file.
struct Answer {
  std::string text{};
  ordered_json json{};
  ExitStatus status = ExitStatus::done;
  std::string in_a_line{};
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

// The gradient of an exported file, or why it has none.
struct ExportedGradient {
  std::optional<ProgramGradient> programs;
  std::string missing;
  Seconds predicted{};  // forward and backward
};

// Programs as a person would write them, so that they get the kernels that such files get.
Plan own_programs(const Checked& c, const Plan& programs, const std::string& what) {
  const ProgramFile file =
      read_program_text(gradient_text(programs, c.file.target), what + c.file.source->file);
  const std::vector<Diagnosis> wrong = mistakes_on(file, *c.gpu);
  if (!wrong.empty()) throw MissingError(format_problem(wrong.front().problem));
  return whole_plan(file);
}

ExportedGradient gradient_with(const Checked& c, const std::vector<std::string>& of,
                               Products products) {
  ExportedGradient out;
  try {
    ProgramGradient found = program_gradient(c.file, of, products);
    found.plan = own_programs(c, found.plan, "gradient of ");
    found.forward = own_programs(c, found.forward, "kept values of ");
    for (const Plan* plan : {&found.plan, &found.forward})
      out.predicted += simulate(*plan, *c.gpu, Fidelity::hierarchy).time;
    out.programs = std::move(found);
  } catch (const MissingError& e) {
    out.missing = e.what();
  }
  return out;
}

ExportedGradient exported_gradient(const Checked& c, const ProgramOptions& o) {
  const auto of = o.of ? parse_list("--of", *o.of) : std::vector<std::string>{};
  try {
    ExportedGradient again = gradient_with(c, of, Products::again);
    ExportedGradient kept = gradient_with(c, of, Products::kept);
    const bool better = kept.programs && kept.programs->keeps &&
                        (!again.programs || kept.predicted < again.predicted);
    return better ? std::move(kept) : std::move(again);
  } catch (const InputError& e) {
    if (o.of) throw;  // a name that is no input
    return {.programs = {}, .missing = e.what()};
  }
}

Answer exported_file(const Checked& c, const Plan& plan, const ProgramOptions& o) {
  if (!o.to)
    throw InputError({.file = kCommandLine,
                      .field = "--to",
                      .message = "is missing: the folder that export makes"});
  check_export_folder(*o.to, o.force);
  const ExportedGradient gradient = exported_gradient(c, o);
  cuda::Exported e = run_long_work([&](const ShowProgress&) {
    return cuda::exported_programs(
        gradient.programs && gradient.programs->keeps ? gradient.programs->forward : plan,
        gradient.programs ? &*gradient.programs : nullptr, *c.gpu, executor::available_threads());
  });
  if (!gradient.missing.empty()) e.no_gradient = gradient.missing;
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

Answer predicted_program(const Checked& c, const Plan& plan, AnswerForm form) {
  const Gpu& gpu = *c.gpu;
  const PlanEstimate estimate = simulate(plan, gpu, Fidelity::hierarchy);
  std::optional<PlanEstimate> apart;
  if (const std::optional<Plan> unfused = unfused_programs(c.file))
    apart = simulate(*unfused, gpu, Fidelity::hierarchy);
  Answer answer;
  if (form == AnswerForm::line) {
    answer.in_a_line = program_prediction_line(estimate, gpu);
    if (apart)
      answer.in_a_line +=
          fmt::format("; {:.2f} times as fast as without fusion", apart->time / estimate.time);
  } else if (form == AnswerForm::json) {
    answer.json = program_prediction_json(estimate, gpu);
    if (apart) answer.json["unfused"] = unfused_prediction_json(estimate, *apart);
  } else {
    answer.text = program_prediction_text(estimate, gpu);
    if (apart) answer.text += unfused_prediction_text(estimate, *apart);
  }
  return answer;
}

Answer legal_program(const std::string& verb, const Checked& c, const ProgramOptions& o) {
  const Gpu& gpu = *c.gpu;
  if (verb == "check") {
    std::size_t programs = 0;
    for (const Kernel& k : c.file.plan.kernels) programs += k.phases.size();
    return {fmt::format("{}: {} program{}, legal on {}\n", c.file.source->file, programs,
                        programs == 1 ? "" : "s", gpu.name),
            {{"programs", programs}}};
  }
  if (verb == "gradient") {
    const ProgramGradient made =
        program_gradient(c.file, o.of ? parse_list("--of", *o.of) : std::vector<std::string>{},
                         o.kept ? Products::kept : Products::again);
    const std::string text = gradient_text(made.plan, c.file.target);
    if (o.kept) write_file_atomically(*o.kept, gradient_text(made.forward, c.file.target));
    return {text, {{"text", text}}};
  }
  const Plan plan = whole_plan(c.file);
  if (verb == "explain") {
    const ProgramExplanation e = explain_programs(c.file, plan, gpu);
    return {program_explanation_text(e), program_explanation_json(e)};
  }
  if (verb == "predict") return predicted_program(c, plan, o.form);
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

}  // namespace

ordered_json no_answer_json(const std::string& verb, const std::string& path,
                            const std::string& why) {
  return {{"schema", "fuseline.program/1"}, {"verb", verb}, {"file", path}, {"error", why}};
}

std::shared_ptr<const Gpu> LoadedGpus::load(const std::string& name) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Gpu>& gpu = known_[name];
  if (gpu == nullptr) gpu = std::make_shared<const Gpu>(load_gpu_option(name));
  return gpu;
}

ProgramAnswer answer_program(const std::string& verb, const std::string& path,
                             const ProgramOptions& o, LoadedGpus& gpus) {
  const Checked c = checked_program(verb, path, o, gpus);
  ProgramAnswer out;
  if (o.form == AnswerForm::json)
    out.json = {{"schema", "fuseline.program/1"},
                {"verb", verb},
                {"file", path},
                {"gpu", c.gpu->name},
                {"legal", c.diagnoses.empty()},
                {"diagnoses", diagnoses_json(c.diagnoses)}};
  if (!c.diagnoses.empty()) {
    out.mistakes = diagnoses_text(c.diagnoses);
    out.in_a_line = fmt::format("{} mistake{}, the first [{}] in line {}", c.diagnoses.size(),
                                c.diagnoses.size() == 1 ? "" : "s", c.diagnoses.front().rule,
                                c.diagnoses.front().problem.line);
    out.status = ExitStatus::wrong_input;
    return out;
  }
  Answer a = legal_program(verb, c, o);
  if (o.form == AnswerForm::json && !a.json.is_null()) out.json.update(a.json);
  out.text = std::move(a.text);
  out.in_a_line = std::move(a.in_a_line);
  if (out.in_a_line.empty())
    out.in_a_line = a.status == ExitStatus::check_failed ? "failed"
                    : verb == "check"                    ? "legal"
                                                         : "pass";
  out.status = a.status;
  return out;
}

}  // namespace fuseline
