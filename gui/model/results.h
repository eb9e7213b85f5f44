// What was computed for a document: one result per run, predicted or measured, in one form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gui/model/run.h"
#include "gui/model/subject.h"
#include "model/explain.h"
#include "sim/block/estimate.h"
#include "sim/report/prediction.h"

namespace fuseline::gui {

// One launch. A measured one has the counted bytes and time; FLOPs, operators and tile are those of
// the planned kernel that it corresponds to, if there is one, and no bound is known.
struct KernelRow {
  KernelEstimate estimate;
  std::string code{};  // of a measurement: the name of the kernel's code
  std::optional<std::size_t>
      plan_kernel{};  // index in the plan; a split-K reduction has its GEMM's
  Seconds start{};    // after the first launch of the run
  bool measured = false;

  [[nodiscard]] Bytes hbm() const { return estimate.hbm_read + estimate.hbm_write; }
};

struct Totals {
  Seconds time;
  Flops flops;
  Bytes hbm_read, hbm_write, l2;
  std::int64_t launches = 0;  // 0 where nothing was traced
  bool has_bytes = true;      // false for a block of which only the time was measured

  [[nodiscard]] Bytes hbm() const { return hbm_read + hbm_write; }
};

// Why a run has no result, or none yet.
struct RunProblem {
  std::string text;
  bool something_missing = false;  // not a mistake: what to install or to run is said
};

struct RunResult {
  std::shared_ptr<const PredictionCase> block;  // null when the setup is wrong
  std::shared_ptr<const Plan> plan;             // null for a measured execution that is no policy
  std::optional<Explanation> explanation;
  std::optional<PlanEstimate> predicted;  // of a prediction: steady state; of a measurement: the
                                          // same policy's replays, to be judged by it
  std::optional<LayersEstimate> layers;   // of a prediction of more than one block
  std::optional<MemoryNeed> memory;       // of a prediction of the whole model
  std::optional<MeasuredBlock> measured_block;
  std::optional<MeasuredTrace> measured_trace;
  std::string source;  // of a measurement: device, driver, toolkit, date
  std::vector<KernelRow> kernels;
  Totals totals;
  std::optional<RunProblem> problem;

  [[nodiscard]] bool is_measured() const { return measured_block || measured_trace; }
};

struct RunView {
  Run run;
  std::shared_ptr<const RunResult> result;
  std::string machine{};  // "h100-sxm": what of its machine and block the other runs have not, see
                          // run_machine.h; empty where all runs are of one machine and block

  [[nodiscard]] bool ok() const { return result != nullptr && !result->problem; }
  [[nodiscard]] std::string label() const;
};

// "eager, measured (h100-sxm)": the name of a run, with its machine where runs differ in theirs.
std::string label_of(const std::string& name, const std::string& machine);

struct Results {
  std::vector<RunView> runs;  // in the document's order
  RunId baseline;
  std::size_t computed = 0;  // runs that were not in the cache

  [[nodiscard]] const RunView* find(RunId id) const;   // null when there is none
  [[nodiscard]] const RunView* baseline_view() const;  // null when it has no result
};

// Whether both are of the same block of the same model, on whatever machine.
bool same_work(const RunResult& a, const RunResult& b);
// And on the same GPU; one with "what if" is another one.
bool same_block(const RunResult& a, const RunResult& b);

// Compares totals of two runs. A prediction beside the measurement of the same policy and block is
// compared as the measurement was made, as replays; `like_for_like` says so.
struct ComparedTotals {
  Totals base;
  Totals other;
  bool like_for_like = false;
};
ComparedTotals comparable_totals(const RunView& base, const RunView& other);

Totals totals_of(const PlanEstimate& estimate);

// What the run's numbers are about; of a run without a block only its policy and source.
Subject subject_of(const RunView& view);
// Whether a difference of the two may be shown: they compute the same, on whatever machine.
bool is_comparable(const RunView& base, const RunView& other);

}  // namespace fuseline::gui
