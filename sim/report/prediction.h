// What a policy's plan of one block is predicted to do, with what was measured of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/config/config.h"
#include "model/plan.h"
#include "sim/block/estimate.h"
#include "sim/block/whole_model.h"
#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"
#include "sim/measured/measurement.h"
#include "sim/memory/memory_fit.h"

namespace fuseline {

// A whole image of a diffusion model: the model runs once a step, and with guidance for two
// branches side by side, with the text and without.
struct ImageRun {
  std::int64_t width = 0, height = 0;  // pixels
  std::int64_t steps = 28;
  bool guided = true;
};

// The block to predict, and where.
struct PredictionCase {
  ModelConfig model;
  Gpu gpu;
  Workload workload;
  Fidelity fidelity = Fidelity::hierarchy;
  Launching launching = Launching::graph;
  std::optional<std::int64_t> layers = 1;  // empty: the whole model
  std::optional<MoneyPerHour> price{};     // of the GPU, where tokens are to be paid for
  std::optional<ImageRun> image{};         // what the workload's tokens are, and how often they run
};

struct Prediction {
  PlanEstimate block;                     // one block
  std::optional<LayersEstimate> layers;   // when more than one block is asked for
  std::optional<MemoryNeed> memory;       // of the whole model, when that is asked for
  std::optional<MeasuredBlock> measured;  // the same case, where it was measured
  std::optional<MeasuredTrace> trace;
  std::optional<PlanEstimate> replayed;  // the block as it is measured: replays on the same input
};

// What gains are measured against: `unfused` where it is among the policies, else the first.
const PlanEstimate& baseline_of(const std::vector<Prediction>& predictions);

// Of a million tokens, when the whole model is predicted and a price is given.
std::optional<Money> cost_per_million_tokens(const Prediction& prediction, const PredictionCase& c);

// The block as measurements repeat it: always the same input.
PlanEstimate simulate_replay(const Plan& plan, const PredictionCase& c);

// `measurements` may be null; those of another GPU are not looked at.
Prediction predict(const Plan& plan, const PredictionCase& c, const Measurements* measurements);

}  // namespace fuseline
