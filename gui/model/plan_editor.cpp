#include "gui/model/plan_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"
#include "gui/model/run_plan.h"
#include "gui/model/text.h"
#include "model/blocks/block.h"
#include "model/programs/legality.h"
#include "model/programs/program_file.h"
#include "sim/selection/plan_file.h"

namespace fuseline::gui {

namespace {

constexpr const char* kPlanEnding = ".fuse";
constexpr std::size_t kLongestPlan = 4 << 20;  // bytes

// A hash is of the text as it was: an edited one has none.
std::string without_hash(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line(text.data() + at, end - at);
    if (!line.starts_with("hash ")) out += line;
    at = end;
  }
  return out;
}

BlockProblem problem_in_plan(const Diagnosis& diagnosis) {
  InputProblem p = diagnosis.problem;
  BlockProblem out{.line = p.line, .column = p.column, .text = {}, .file = {}};
  p.line = p.column = 0;
  p.shown.clear();
  p.file.clear();
  out.text = format_problem(p);
  if (!diagnosis.mend.empty()) out.text += "; write: " + diagnosis.mend;
  return out;
}

}  // namespace

PlanEditorText plan_editor_text(const Document& document, const Results& results, RunId id) {
  PlanEditorText out;
  const Run* run = document.runs.find(id);
  if (run == nullptr || run->is_measurement()) {
    out.why_not = "a measured run has no plan: choose a prediction";
    return out;
  }
  out.run = id;
  out.own = run->has_plan();
  out.name = run->plan.empty() ? run->name : std::filesystem::path(run->plan).filename().string();
  if (!run->plan.empty()) {
    try {
      out.original = without_hash(read_program_file(run->plan).source->text);
    } catch (const InputError& error) {
      out.why_not = error.what();
    }
  } else if (out.own) {
    out.original = run->plan_text;  // nothing else is known of what it was
  } else if (const RunView* view = results.find(id); view != nullptr && view->ok()) {
    out.original = without_hash(plan_text(*view->result->plan, view->result->block->gpu.name));
  } else {
    out.why_not = view != nullptr && view->result && view->result->problem
                      ? view->result->problem->text
                      : "nothing is computed yet";
  }
  out.text = !run->plan_draft.empty()  ? run->plan_draft
             : !run->plan_text.empty() ? run->plan_text
                                       : out.original;
  if (!out.text.empty()) out.why_not.clear();
  return out;
}

CheckedPlan check_plan_text(const Setup& setup, const std::string& text, const std::string& name) {
  CheckedPlan out;
  const auto refuse = [&](const std::string& why) {
    out.problems.push_back({.line = 1, .column = 1, .text = why, .file = {}});
  };
  if (text.size() > kLongestPlan) {
    refuse("the text is longer than 4 MiB");
    return out;
  }
  const ProgramFile file = read_program_text(text, name);
  for (const Diagnosis& d : check_programs(file)) out.problems.push_back(problem_in_plan(d));
  out.policy = file.plan.policy;
  for (std::size_t k = 0; k < file.places.size() && k < file.plan.kernels.size(); ++k) {
    if (file.places[k].empty()) continue;
    out.kernels.push_back({file.plan.kernels[k].name, file.places[k].front().head.line});
  }
  if (!out.problems.empty()) return out;
  try {
    const PredictionCase c = resolve(setup);
    const auto plan = plan_of_file(file);
    check_same_block(*plan, build_block(c.model, c.workload), c.model.name, name, "plan");
  } catch (const InputError& error) {
    InputProblem p = error.problem();
    p.file.clear();
    refuse(format_problem(p));
    out.problems.back().line = p.line;
    out.problems.back().column = p.column;
  }
  return out;
}

PlanNumbers plan_numbers(const Results& results, RunId run, const std::vector<KernelLines>& kernels,
                         int line) {
  PlanNumbers out;
  const RunView* view = results.find(run);
  if (view == nullptr || !view->result) return {"not predicted yet"};
  if (view->result->problem) return {view->result->problem->text};
  const Totals& totals = view->result->totals;
  out.total = fmt::format("{}, HBM {}", short_time(totals.time), short_bytes(totals.hbm()));
  const RunView* base = results.baseline_view();
  if (base != nullptr && base->run.id != run && is_comparable(*base, *view)) {
    const ComparedTotals both = comparable_totals(*base, *view);
    const double hbm = both.base.hbm().as_double();
    out.total += fmt::format(
        " · {} than {}, HBM {}", speed_text(both.base.time / both.other.time), base->label(),
        signed_percent_text(hbm > 0 ? (both.other.hbm().as_double() - hbm) / hbm : 0));
  }
  const KernelLines* at = nullptr;
  for (const KernelLines& k : kernels)
    if (k.line <= line) at = &k;
  if (at == nullptr) return out;
  Seconds time;
  Bytes hbm;
  const KernelRow* first = nullptr;
  for (const KernelRow& row : view->result->kernels) {
    // What a kernel leaves behind is named after it.
    const std::string& name = row.estimate.name;
    if (name != at->kernel && !name.starts_with(at->kernel + "_")) continue;
    if (name != at->kernel && first == nullptr) continue;
    if (name == at->kernel) first = &row;
    const bool follows = first != nullptr && row.plan_kernel == first->plan_kernel;
    if (!follows) continue;
    time += row.estimate.time;
    hbm += row.hbm();
  }
  if (first != nullptr) {
    out.kernel = fmt::format("{}: {}, set by {}, HBM {}", at->kernel, short_time(time),
                             name_of(first->estimate.bound), short_bytes(hbm));
  }
  return out;
}

void save_plan_text(const std::string& text, const std::string& path) {
  if (std::filesystem::path(path).extension() != kPlanEnding)
    throw InputError(
        {.file = path,
         .message = "is no name of a plan's file",
         .allowed = "a name that ends in .fuse",
         .nearest = std::filesystem::path(path).replace_extension(kPlanEnding).string()});
  replace_file(path, text);
}

std::vector<WordSpan> words_of_plan_line(std::string_view line) {
  static constexpr std::string_view kKeywords[] = {
      "fuse",   "plan",    "target", "hash",       "rewrites", "size",   "let",     "input",
      "weight", "table",   "cache",  "output",     "op",       "relate", "kernel",  "activation",
      "ops",    "program", "store",  "store_rows", "for",      "phase",  "function"};
  std::vector<WordSpan> words;
  const auto is_letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  bool first = true;
  for (std::size_t at = 0; at < line.size();) {
    const char c = line[at];
    if (c == '#') {
      words.push_back({at, line.size() - at, WordRole::comment});
      break;
    }
    if (!is_letter(c)) {
      ++at;
      continue;
    }
    std::size_t end = at;
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0;
    while (end < line.size() && (is_letter(line[end]) || (number && line[end] == '.'))) ++end;
    const std::string_view word = line.substr(at, end - at);
    if (number) {
      words.push_back({at, end - at, WordRole::number});
    } else if (std::exchange(first, false) &&
               std::ranges::find(kKeywords, word) != std::end(kKeywords)) {
      words.push_back({at, end - at, WordRole::keyword});
    } else if (end < line.size() && line[end] == '(') {
      words.push_back({at, end - at, WordRole::function});
    }
    at = end;
  }
  return words;
}

}  // namespace fuseline::gui
