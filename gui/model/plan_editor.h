// The plan of a run as text: what stands in the editor, what is wrong with it and where, and what
// each kernel of it takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/model/block_editor.h"
#include "gui/model/document.h"
#include "gui/model/results.h"

namespace fuseline::gui {

struct PlanEditorText {
  RunId run{};
  std::string name;      // "coda", "mine.fuse"
  std::string original;  // what the file says, or the policy's plan; without the line of its hash
  std::string text;      // what stands in the editor
  bool own = false;      // the run has a plan of its own; else typing makes a run that has
  std::string why_not;   // there is no text: a measured run, a run without a result

  [[nodiscard]] bool edited() const { return own && text != original; }
};
PlanEditorText plan_editor_text(const Document& document, const Results& results, RunId run);

// Where a kernel's lines begin.
struct KernelLines {
  std::string kernel;
  int line = 0;  // 1-based
};

// What checking a text finds. Off the window's thread: a plan of a block takes some milliseconds, a
// large file more.
struct CheckedPlan {
  std::vector<BlockProblem> problems;  // in the order of their lines; none: it can be predicted
  std::string policy;                  // that the plan is of
  std::vector<KernelLines> kernels;
};
// `setup`: whose block it must be a plan of. `name`: for messages.
CheckedPlan check_plan_text(const Setup& setup, const std::string& text, const std::string& name);

// What stands beside the text: the run's time and bytes, and how they differ from the baseline's.
struct PlanNumbers {
  std::string total;     // "1490.2 µs, 1.02× faster than eager; HBM 1.2 GB, −1.1 %"
  std::string kernel{};  // of the kernel that has the line: "gate_up: 310.2 µs, tensor, HBM 0.2 GB"
};
PlanNumbers plan_numbers(const Results& results, RunId run, const std::vector<KernelLines>& kernels,
                         int line);

// InputError: it does not end in .fuse, or cannot be written. Whole or not at all.
void save_plan_text(const std::string& text, const std::string& path);

// What the words of a line of a plan are.
std::vector<WordSpan> words_of_plan_line(std::string_view line);

}  // namespace fuseline::gui
