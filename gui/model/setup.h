// What is asked for: model, GPU (with "what if" factors), phase and sizes, fidelity.
#pragma once

#include <string>
#include <vector>

#include "model/config/scenario.h"
#include "model/config/what_if.h"
#include "sim/block/estimate.h"
#include "sim/report/prediction.h"

namespace fuseline::gui {

struct Setup {
  std::string model = "llama2-7b";  // a name, a TOML path, a config.json path; empty: the block
  std::string gpu = "h200";         // a name or a TOML path
  WhatIf what_if;
  Workload workload;
  Fidelity fidelity = Fidelity::hierarchy;
  BlockChange change{};  // another block in the place of the model's, or its text as it is edited
};
bool operator==(const Setup& a, const Setup& b);

// The files behind the names, checked. InputError as the command line gives it.
PredictionCase resolve(const Setup& setup);

// Equal texts mean equal setups.
std::string cache_key(const Setup& setup);

// The phase with the sizes it starts from, as the command line has them: 2,048 tokens; in decode
// one new token against 2,048. Sizes stay when decode is neither left nor entered.
Setup with_phase(Setup setup, Phase phase);

// "LLaMA-2-7B · H200 · forward, batch 1, 2,048 tokens, bf16"
std::string describe(const PredictionCase& resolved);

Setup from_scenario(const ScenarioSetup& scenario);
ScenarioSetup to_scenario(const Setup& setup);

// One slider of the "what if" panel. Factors go from kLeastFactor to kMostFactor, on a log scale.
struct WhatIfSlider {
  std::string key;     // of kWhatIfFields
  std::string label;   // "HBM bandwidth"
  double factor = 1;   // now
  std::string value;   // "4.80 TB/s": with the factor
  std::string base;    // as described by the GPU's file
  std::string source;  // of the base value: document, date, status
};
// InputError when the GPU cannot be loaded.
std::vector<WhatIfSlider> what_if_sliders(const Setup& setup);

// A number of the GPU typed in place of a factor ("6 TB/s" for hbm_bandwidth, "72 MiB", "144", "2.1
// GHz"). InputError: not a number, another unit, out of range.
double factor_of_value(const Setup& setup, const std::string& key, const std::string& text);

}  // namespace fuseline::gui
