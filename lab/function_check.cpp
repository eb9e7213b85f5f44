// Judges a student's function by its results and by the accesses that the harness counted.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/format.h"
#include "lab/check.h"
#include "lab/student_code.h"
#include "model/reference.h"

namespace fuseline::lab {

namespace {

// The nearest of the mistakes that give these values.
const ValueMistake* known_mistake(const FunctionCase& what, const CaseMatrix& want,
                                  const std::vector<double>& got) {
  const auto distance = [&](const ValueMistake& m) {
    double sum = 0;
    for (std::size_t i = 0; i < got.size(); ++i) sum += std::pow(got[i] - m.values[i], 2);
    return sum;
  };
  const ValueMistake* best = nullptr;
  for (const ValueMistake& m : what.mistakes) {
    if (m.target != want.name || !disagreement(got, m.values, want.tolerance).empty()) continue;
    if (best == nullptr || distance(m) < distance(*best)) best = &m;
  }
  return best;
}

std::string wrong_values(const FunctionKey& key, const FunctionCase& what, const CaseMatrix& want,
                         const std::vector<double>& got) {
  const bool finite = std::ranges::all_of(got, [](double v) { return std::isfinite(v); });
  if (!finite && !key.nan_values.empty()) {
    return fmt::format("'{}' holds infinities or NaN: {}", want.name, key.nan_values);
  }
  const std::string problem = disagreement(got, want.values, want.tolerance);
  if (problem.empty()) return {};
  if (const ValueMistake* known = known_mistake(what, want, got)) {
    return fmt::format("'{}' differs from the fp64 reference: {}", want.name, known->diagnosis);
  }
  return fmt::format("'{}' differs from the fp64 reference ({}): {}", want.name, problem,
                     key.wrong_values);
}

std::string wrong_loads(const FunctionKey& key, const CaseMatrix& m, std::int64_t loads) {
  if (loads <= m.accesses) return {};
  const double times = static_cast<double>(loads) / static_cast<double>(m.accesses);
  std::string text =
      fmt::format("'{}' is loaded {:.3g} times as often as needed ({} B, {} B needed)", m.name,
                  times, grouped(loads * m.element_bytes), grouped(m.accesses * m.element_bytes));
  for (const LoadMistake& known : key.mistakes) {
    if (known.matrix == m.name && times > known.least && times <= known.most) {
      return text + ": " + known.diagnosis;
    }
  }
  return text;
}

std::string wrong_stores(const CaseMatrix& m, std::int64_t stores) {
  if (stores == 0) return fmt::format("nothing is stored to '{}' yet", m.name);
  if (stores < m.accesses) {
    return fmt::format("only {} of the {} elements of '{}' are stored", grouped(stores),
                       grouped(m.accesses), m.name);
  }
  if (stores > m.accesses) {
    return fmt::format("'{}' is stored {:.3g} times over: keep what is not final on chip", m.name,
                       static_cast<double>(stores) / static_cast<double>(m.accesses));
  }
  return {};
}

// Empty: the case passes. Results first: counts of wrong results mean little.
std::string problem_of(const FunctionKey& key, const FunctionCase& what, const CaseRun& run) {
  if (!run.problem.empty()) return run.problem;
  for (const CaseMatrix& m : what.matrices) {
    if (!m.target) continue;
    const std::int64_t stores = run.counts.at(m.name).stores;
    std::string text = stores < m.accesses ? wrong_stores(m, stores)
                                           : wrong_values(key, what, m, run.targets.at(m.name));
    if (!text.empty()) return text;
  }
  if (run.on_chip > what.on_chip) {
    return fmt::format("the function holds {} B on chip, and the chip has {} B: {}",
                       grouped(run.on_chip.value()), grouped(what.on_chip.value()),
                       key.over_capacity);
  }
  for (const CaseMatrix& m : what.matrices) {
    const AccessCounts& counts = run.counts.at(m.name);
    std::string text =
        m.target ? wrong_stores(m, counts.stores) : wrong_loads(key, m, counts.loads);
    if (!text.empty()) return text;
  }
  return {};
}

Bytes traffic(const FunctionCase& what, const CaseRun& run) {
  Bytes sum;
  for (const CaseMatrix& m : what.matrices) {
    const AccessCounts& counts = run.counts.at(m.name);
    sum += checked_product<Bytes>(counts.loads + counts.stores, m.element_bytes);
  }
  return sum;
}

}  // namespace

TaskResult judge_function(const FunctionKey& key, const std::filesystem::path& folder) {
  const ScratchFolder scratch;
  const Bytes always = compile_student_code(folder / key.file, key.harness, scratch);
  TaskResult result;
  result.verdict = Verdict::wrong;
  Bytes moved;
  for (const FunctionCase& what : key.cases) {
    CaseRun run = run_student_code(what, scratch);
    run.on_chip += always;
    const std::string problem = problem_of(key, what, run);
    if (!problem.empty()) {
      if (!what.hidden) result.printed = run.printed;
      result.trick = run.trick;
      result.diagnosis = fmt::format("{}: {}", what.hidden ? "hidden shape" : what.name, problem);
      return result;
    }
    moved += traffic(what, run);
  }
  result.verdict = Verdict::right;
  result.diagnosis =
      fmt::format("{} shapes agree with fp64; {} B loaded and stored, as few as asked for",
                  key.cases.size(), grouped(moved.value()));
  return result;
}

}  // namespace fuseline::lab
