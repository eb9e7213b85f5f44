// Judges a student's file of programs: legal, with the tensors that were given, and computing what
// was asked for, whatever way it takes.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/format.h"
#include "lab/check.h"
#include "lab/plan_bytes.h"
#include "lab/workspace.h"
#include "model/config/dtype.h"
#include "model/programs/legality.h"
#include "model/programs/own_plan.h"
#include "model/programs/program_file.h"
#include "sim/executor/execute.h"
#include "sim/executor/inputs.h"
#include "sim/executor/tensor_error.h"
#include "sim/gpu/gpu.h"
#include "sim/programs/check_results.h"
#include "sim/programs/tile_check.h"

namespace fuseline::lab {

namespace {

constexpr std::uint64_t kInputSeed = 20;
// Of all tensors of a file: a student's file runs here, and is no place for large ones.
constexpr std::int64_t kMostTensorBytes = std::int64_t{16} << 20;
constexpr std::size_t kMostPrograms = 16;

// Why the file is not legal; empty when it is.
std::string illegal(const ProgramFile& file, const Gpu& gpu) {
  std::vector<Diagnosis> mistakes = check_programs(file);
  if (mistakes.empty()) mistakes = check_tiles(file, gpu);
  if (mistakes.empty()) return {};
  const Diagnosis& first = mistakes.front();
  std::string text = fmt::format("not legal: line {}", first.problem.line);
  if (!first.problem.value.empty()) text += fmt::format(": '{}'", first.problem.value);
  text += fmt::format(": {} [{}]", first.problem.message, first.rule);
  if (mistakes.size() > 1) text += fmt::format("; and {} more", mistakes.size() - 1);
  return text + fmt::format("; 'fuseline program check {}' says why",
                            std::filesystem::path(file.source->file).filename().string());
}

std::string shape_text(const Tensor& t) {
  return fmt::format("{}[{},{}], {}", t.name, t.rows, t.cols, name_of(t.dtype));
}

bool is_given(const Tensor& t) { return t.role != Role::activation && t.role != Role::output; }

// Why the tensors are not those that were given; empty when they are.
std::string other_tensors(const Graph& got, const Graph& wanted,
                          const std::vector<std::string>& outputs) {
  const auto differs = [](const Tensor& a, const Tensor& b) {
    return a.rows != b.rows || a.cols != b.cols || a.dtype != b.dtype || a.role != b.role;
  };
  std::int64_t bytes = 0;
  for (const Tensor& t : got.tensors()) {
    bytes += t.bytes().value();
    if (bytes > kMostTensorBytes) {
      return fmt::format(
          "'{}': all tensors together take more than {} MiB: leave the sizes as "
          "they were given",
          t.name, kMostTensorBytes >> 20);
    }
    if (!is_given(t)) continue;
    const auto same = wanted.find_tensor(t.name);
    if (!same) return fmt::format("reads '{}', which nobody gives to it", t.name);
    if (differs(t, wanted.tensor(*same))) {
      return fmt::format("'{}' was given as {}", t.name, shape_text(wanted.tensor(*same)));
    }
  }
  for (const std::string& name : outputs) {
    const Tensor& asked = wanted.tensor(*wanted.find_tensor(name));
    const auto there = got.find_tensor(name);
    if (!there) return fmt::format("stores no '{}' yet: output {}", name, shape_text(asked));
    if (differs(got.tensor(*there), asked)) {
      return fmt::format("'{}' has to be an output {}", name, shape_text(asked));
    }
  }
  return {};
}

Plan plan_of_text(const std::string& text) {
  const ProgramFile file = read_program_text(text, "the lab's own program");
  FUSELINE_ASSERT(check_programs(file).empty(),
                  check_programs(file).front().problem.message + "\n" + text);
  return whole_plan(file);
}

executor::Execution run(const Plan& plan, const executor::Inputs& inputs, const Gpu& gpu) {
  return executor::execute(plan, inputs, gpu, {.workers = {.threads = 1}});
}

const executor::Storage& stored_by(const Plan& plan, const executor::Execution& execution,
                                   const std::string& name) {
  return execution.memory->at(plan.graph.find_tensor(name).value());
}

// The known mistake whose results these are.
const ProgramKey::KnownMistake* known_program_mistake(const ProgramKey& key,
                                                      const std::string& name, double allowed,
                                                      const executor::Storage& got,
                                                      const executor::Inputs& inputs,
                                                      const Gpu& gpu) {
  for (const ProgramKey::KnownMistake& m : key.mistakes) {
    const Plan plan = plan_of_text(m.text);
    if (!plan.graph.find_tensor(name)) continue;
    const executor::Execution execution = run(plan, inputs, gpu);
    const executor::TensorError error = executor::compare(
        got, executor::to_doubles(stored_by(plan, execution, name)), 0, got.cols());
    if (error.relative_l2 <= 2 * allowed) return &m;
  }
  return nullptr;
}

// Why the results are not those that were asked for; empty when they are.
std::string wrong_results(const ProgramKey& key, const Plan& plan, const Plan& wanted,
                          const Gpu& gpu) {
  const executor::Inputs inputs =
      executor::random_storage(wanted.graph, kInputSeed, {.threads = 1});
  const executor::Execution execution = run(plan, inputs, gpu);
  // What the student's file has no tensor for is not asked for.
  std::map<std::string, executor::Storage> nothing;
  const CheckedResults checked = check_results(
      wanted, inputs,
      [&](TensorId id) -> const executor::Storage& {
        const Tensor& t = wanted.graph.tensor(id);
        if (const auto mine = plan.graph.find_tensor(t.name)) {
          const Tensor& other = plan.graph.tensor(*mine);
          if (other.rows == t.rows && other.cols == t.cols) return execution.memory->at(*mine);
        }
        return nothing.try_emplace(t.name, t.dtype, t.rows, t.cols).first->second;
      },
      kInputSeed);
  FUSELINE_ASSERT(checked.why_not.empty(), checked.why_not);
  for (const VerifiedTensor& t : checked.tensors) {
    if (std::ranges::find(key.outputs, t.name) == key.outputs.end() || t.agrees()) continue;
    const std::string problem =
        fmt::format("'{}' differs from fp64 (relative L2 error {:.2g}, allowed {:.2g})", t.name,
                    t.error, t.allowed);
    const auto* known = known_program_mistake(key, t.name, t.allowed,
                                              stored_by(plan, execution, t.name), inputs, gpu);
    return known == nullptr ? problem : problem + ": " + known->diagnosis;
  }
  return {};
}

}  // namespace

TaskResult judge_program(const ProgramKey& key, const std::filesystem::path& folder) {
  require_plain_file(folder / key.file);
  return judge_program(key, read_program_file((folder / key.file).string()));
}

TaskResult judge_program(const ProgramKey& key, const ProgramFile& file) {
  TaskResult result;
  if (file.source->text.find("\nprogram ") == std::string::npos) {
    result.diagnosis = key.file + " holds no program yet";
    return result;
  }
  result.verdict = Verdict::wrong;
  const Gpu gpu = load_gpu(key.gpu);
  const Plan wanted = plan_of_text(key.wanted);
  result.diagnosis =
      file.readable() ? other_tensors(file.plan.graph, wanted.graph, key.outputs) : std::string();
  if (result.diagnosis.empty()) result.diagnosis = illegal(file, gpu);
  if (!result.diagnosis.empty()) return result;
  if (file.plan.kernels.size() > kMostPrograms) {
    result.diagnosis = fmt::format("holds more than {} programs", kMostPrograms);
    return result;
  }
  const Plan plan = whole_plan(file);
  try {
    result.diagnosis = wrong_results(key, plan, wanted, gpu);
  } catch (const InputError& error) {
    result.diagnosis = error.problem().message;  // what it computes is not finite
  }
  if (!result.diagnosis.empty()) return result;
  const Bytes bytes = plan_bytes(plan);
  const std::string counted = fmt::format("{} B in {} program{}", grouped(bytes.value()),
                                          plan.kernels.size(), plan.kernels.size() == 1 ? "" : "s");
  if (bytes > key.most) {
    result.diagnosis = fmt::format(
        "right, but {}; at most {} B are asked for: what goes to HBM "
        "and could stay on chip?",
        counted, grouped(key.most.value()));
    return result;
  }
  result.verdict = Verdict::right;
  result.diagnosis = "agrees with fp64; " + counted;
  return result;
}

}  // namespace fuseline::lab
