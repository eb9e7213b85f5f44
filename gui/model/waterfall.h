// From unfused to fused, one step per fusion, down to the limit.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/latest_wins.h"
#include "gui/model/results.h"
#include "gui/model/roles.h"
#include "gui/model/selection.h"
#include "gui/model/table.h"

namespace fuseline::gui {

enum class StepKind : std::uint8_t { total, fusion, rewrites, rest, limit };

struct WaterfallStep {
  StepKind kind = StepKind::fusion;
  std::string label;  // "unfused", "gate_up + swiglu", "to the limit"
  std::string tooltip;
  Bytes before{}, after{};  // HBM traffic; a total goes from zero
  Seconds time_before, time_after;
  Colour colour;
  std::vector<std::string> operators;  // that the step puts into one kernel

  [[nodiscard]] Bytes saved() const { return before - after; }  // negative when it costs
};

struct Waterfall {
  std::string title;
  std::vector<WaterfallStep> steps;  // each begins where the one before ended
  double axis_high = 1;              // bytes
  std::string problem;
  Subject about{};  // the target
};

// The steps: policy `unfused` in full; the target's rewrites and attention in one kernel; then each
// of its kernels of several operators, in order of launch; what remains between these choices and
// the target's own plan (kernels that the policy joins side by side, the implementations it uses);
// the target in full; from there to the least that HBM must move. Bytes are integers, so the steps
// from `unfused` to the target add up to their difference exactly. About 20 ms a step at hierarchy
// fidelity. `target`: a prediction that is ok(). Cancelled.
Waterfall waterfall(const RunView& target, const std::stop_token& stop = {},
                    const Progress& progress = {});
Table to_table(const Waterfall& chart);

}  // namespace fuseline::gui
