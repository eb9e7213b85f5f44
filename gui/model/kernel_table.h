// The kernels of one run as a table, with differences to the baseline's; and the program of one of
// them with why its neighbours are not in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/delta.h"
#include "gui/model/results.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

struct KernelColumn {
  std::string key;     // as in JSON and CSV: "time_us"
  std::string header;  // "time µs"
  std::string tooltip;
  bool is_number = true;
};

struct KernelCell {
  std::string text;
  double sort_key = 0;  // of number columns
  std::string tooltip;  // the exact value
  Colour colour{};      // of differences
};

struct KernelLine {
  std::size_t kernel = 0;  // launch
  std::vector<KernelCell> cells;
  Thing thing;
};

struct KernelTable {
  std::vector<KernelColumn> columns;
  std::vector<KernelLine> lines;  // in order of launch
  std::vector<KernelCell> total;  // the same columns
  std::string problem;
  Subject about{};
  std::optional<Subject> base{};  // that differences are to; none: there are none
};

// Differences (columns delta_time, delta_hbm) are to the sum of the baseline's kernels that hold
// the same operators or the same sites, each charged once: to the first of this run's kernels that
// shares one with it. Empty when the run is the baseline.
KernelTable kernel_table(const Results& results, RunId run);
Table to_table(const KernelTable& table);

struct ProgramNote {
  OnChipEdge edge;
  bool fused = false;
  std::string text;  // "gate_up → swiglu: apart: the pairs of swiglu ..."
  Thing thing;
};

struct ProgramText {
  std::string title;                // "gate_up (gemm, epilogue GEMM)"
  std::vector<std::string> phases;  // programs; more than one only for a persistent kernel
  std::string code;                 // of a measured launch: the name of its code
  std::vector<ProgramNote> notes;   // edges from and to the kernel's operators, not fused first
  std::string problem;
  Subject about{};
};
ProgramText program_text(const Results& results, RunId run, std::size_t kernel);

}  // namespace fuseline::gui
