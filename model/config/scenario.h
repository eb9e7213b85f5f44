// A scenario: what to predict, written down. The command line may change any part of it. The
// window's sessions are scenarios with more in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/config/model_files.h"
#include "model/config/what_if.h"
#include "model/custom_fusion.h"

namespace fuseline {

// The setup that a run of a session keeps for itself; the fields mean what they mean in Scenario.
struct ScenarioSetup {
  std::string model;
  std::string gpu;
  WhatIf what_if;
  Workload workload;
  std::string fidelity;
  BlockChange change{};
};

// One [[runs]] table: what the window compares. The command line does not read it.
struct ScenarioRun {
  std::string name;                    // unique among the runs
  std::string policy;                  // one of policies() or `custom`; a measured execution
  std::filesystem::path measurements;  // of a measured run; empty: a prediction
  std::filesystem::path plan;          // of a prediction whose plan is a file's, of that policy
  std::string plan_text;               // of a prediction whose plan was edited in the window
  std::string plan_draft;              // what stands there and is not predicted
  CustomFusion custom;                 // of a prediction under `custom`
  std::optional<ScenarioSetup> setup;  // empty: the scenario's own
};

struct Scenario {
  std::string title;
  std::string model;  // a name or a path, for load_model(); empty: `change` names a block
  std::string gpu;    // a name or a path, for load_gpu()
  Workload workload;
  std::vector<std::string> policies;       // names of policies(), or `custom`; at least one
  std::string fidelity;                    // one of fidelity_words()
  std::optional<std::int64_t> layers = 1;  // empty: all, with embedding, final norm and LM head
  std::filesystem::path measurements;      // a folder or file to compare with; empty: none
  WhatIf what_if;                          // [what_if]: factors on the GPU's numbers
  std::optional<CustomFusion> custom;      // [custom]: what policy `custom` does
  std::vector<ScenarioRun> runs;           // [[runs]]: of the window
  std::string baseline;  // [gui] baseline: a run's name; empty: the window chooses
  BlockChange change;    // block, block_text
  std::string draft;     // [gui] block_draft: the block's text as it was left, with errors in it
};

// From a name of scenario_names() or a TOML path. Paths inside the file start at its folder.
// Defaults: phase forward, batch 1, seq 2048 (1 in decode), dtype bf16, weights and cache in it,
// all policies, fidelity hierarchy, layers 1, nothing custom, no runs. InputError as for models;
// also unknown phases and policies (nearest), a context outside decode, none in decode, or one
// shorter than the new tokens, policy custom without [custom], runs of one name, a baseline that is
// no run.
Scenario load_scenario(const std::string& name_or_path);
std::vector<std::string> scenario_names();

// The scenario as TOML that load_scenario() reads back equal. Paths below `folder`, where the text
// will stand, are written relative to it, others in full. Defaults are written out where a reader
// would want to see them.
std::string scenario_text(const Scenario& scenario, const std::filesystem::path& folder);

// The names of the simulator's fidelities (sim/block/estimate.h), which this layer does not
// include.
std::vector<std::string> fidelity_words();

}  // namespace fuseline
