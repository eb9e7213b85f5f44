// The whole model of each run: prefill, a decode step, embedding and LM head, and whether it fits
// in the GPU's memory with its cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/document.h"
#include "gui/model/latest_wins.h"
#include "gui/model/roles.h"
#include "gui/model/table.h"
#include "sim/gpu/cost.h"

namespace fuseline::gui {

struct WholeModelRequest {
  Setup setup;
  std::vector<Run> runs;                // predictions; each under its own setup where it is pinned
  std::optional<MoneyPerHour> price{};  // of the GPU

  friend bool operator==(const WholeModelRequest&, const WholeModelRequest&) = default;
};

// "32 layers", "embedding", "final norm, LM head".
struct StepPart {
  std::string label;
  Seconds time;
  Bytes hbm{};
  Colour colour{};
  std::string tooltip{};
};

// One pass through the model: the prompt, one step of decode, one step of training.
struct ModelStep {
  std::string what;  // "prefill, 2,048 tokens each"
  Seconds time;
  std::vector<StepPart> parts{};  // they add up to `time`
  double tokens_per_second = 0;
  std::optional<Money> cost{};  // of a million of its tokens
  Subject about{};
  std::string problem{};  // in place of the numbers
};

struct NeedPart {
  std::string label;  // "weights"
  Bytes bytes{};
  Colour colour{};
};

// What a step keeps in the GPU's memory.
struct MemoryBar {
  std::vector<NeedPart> parts{};
  Bytes total{};
  Bytes capacity{};
  bool fits = false;
  std::string verdict;  // "fits: 14.6 GB of 141.0 GB", "does not fit: 5.2 GB too many"
  std::optional<std::int64_t> longest{};  // context that still fits with this batch; decode and
                                          // prefill
};

struct ModelRow {
  RunId run{};
  std::string label;
  std::vector<ModelStep> steps{};   // prefill and decode, or training
  std::vector<MemoryBar> memory{};  // of each step; of steps without a problem
};

struct WholeModel {
  std::string title;  // "The whole LLaMA-2-7B on NVIDIA H200"
  std::vector<ModelRow> rows{};
  std::string problem{};
};

// The prompt is as long as the setup's T, or in decode as its context. One to three block
// simulations a run and step, 20 to 100 ms. Cancelled.
WholeModel whole_model_chart(const WholeModelRequest& request, const std::stop_token& stop = {},
                             const Progress& progress = {});

// The workload's prompt, and one new token of each sequence behind it.
Workload prefill_of(const Workload& workload);
Workload decode_of(const Workload& workload);

std::string tokens_per_second_text(double rate);  // "42,480 tokens/s"
std::string cost_text(Money cost);                // "0.12 a million tokens"

Table to_table(const WholeModel& chart);

}  // namespace fuseline::gui
