// What a request is about: which block, on which GPU, under which policies. The command line's
// options and Python's keywords say it in the same words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/config/scenario.h"
#include "model/custom_fusion.h"
#include "sim/block/estimate.h"
#include "sim/gpu/gpu.h"
#include "sim/report/prediction.h"
#include "sim/selection/words.h"

namespace fuseline {

struct Selection : PredictionCase {
  std::string title;  // of the scenario, or empty
  std::vector<std::string> policies;
  CustomFusion custom;                      // what policy `custom` does, when the scenario says
  std::optional<std::string> measurements;  // folder or file, when the scenario names one
  std::shared_ptr<const Plan> plan{};       // what --plan names, in the place of a policy's plan
};

// The plan of the selected block under that policy, or the plan of the file that --plan names.
// InputError: the file's plan computes another block.
Plan plan_of(const Selection& selection, const std::string& policy);

// What was said, before it is checked; absent = not said.
struct SelectionWords {
  std::optional<std::string> model, block, gpu, phase, batch, seq, context, dtype, weights,
      activations, kv, routing, policy, fidelity, layers, image, steps, guidance, launch, plan;
};

// The scenario file (if any) with the command line's options on top. Where neither says anything:
// llama2-7b, h100, forward, batch 1, 2,048 tokens (decode: 1 new token, 2,048 of context), bf16,
// all policies; weights in the format that the model's file is stored in. InputError for anything
// unknown, out of range, or inconsistent.
Selection resolve_selection(const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts);
// The same of a scenario that was read before, for several selections of one scenario.
Selection resolve_selection(const std::optional<Scenario>& read,
                            const std::optional<std::string>& scenario_path,
                            const SelectionWords& texts);

// The GPU that --gpu names. InputError: absent, unknown (nearest name), a bad file.
Gpu load_gpu_option(const std::optional<std::string>& text);

// The price of the GPU for an hour, above 0. InputError: no such number; `layers` are not those of
// the whole model, without which no cost of a token is known.
MoneyPerHour parse_price(const std::string& text, const std::optional<std::int64_t>& layers);

// The number format that --weights names; the name of `plain` means no format. InputError: an
// unknown format (with the nearest name), a group that the format does not have.
StoredWeight weights_option(const std::string& text, Dtype plain);
// The number format of what is multiplied by such weights, which --activations names.
StoredWeight activations_option(const std::string& text, Dtype plain);

Fidelity parse_fidelity(const std::string& text);
// Of --launch, some of launching_names().
Launching parse_launching(const std::string& text,
                          const std::vector<std::string>& allowed = launching_names());
// The policies of "a,b", or of "all". `with_custom`: the word "custom" is a policy too. InputError:
// an unknown policy (with the nearest name).
std::vector<std::string> parse_policies(const std::string& text, bool with_custom = false);

}  // namespace fuseline
