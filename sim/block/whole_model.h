// From one block to a number of layers, and to the whole model with what stands around its blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/config/config.h"
#include "sim/block/estimate.h"

namespace fuseline {

// Layers in a row, each the steady-state block, with embedding before and final norm and LM head
// after them when `entry` and `exit` are there.
struct LayersEstimate {
  std::int64_t layers = 0;
  std::optional<PlanEstimate> entry;  // embedding
  std::optional<PlanEstimate> exit;   // final norm and LM head
  // What they are called: those of a model without tokens' numbers by the names of their blocks.
  std::string entry_name{}, exit_name{};
  Seconds time;
  Flops flops;
  Bytes hbm_read, hbm_write, l2;
  std::int64_t launches = 0;
  Joules dynamic_energy;

  // Tokens that the workload processes (forward) or generates (decode), over the time.
  [[nodiscard]] double tokens_per_second(const Workload& workload) const;
};

// `layers` times the block: every sum is that multiple.
LayersEstimate repeat_block(const PlanEstimate& block, std::int64_t layers);

// All layers of the model, an encoder's over its own tokens, and what stands around them, under the
// block's policy. `block` is the model's first block; its others are simulated here. InputError: a
// custom plan of a model with others. `by_tensor`: as in SimulationOptions.
LayersEstimate whole_model(const PlanEstimate& block, const ModelConfig& config,
                           const Workload& workload, const Gpu& gpu,
                           Launching launching = Launching::graph, bool by_tensor = true);

}  // namespace fuseline
