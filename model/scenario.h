// A scenario: what to predict, written down. The command line may change any part of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace fuseline {

struct Scenario {
  std::string title;
  std::string model;  // a name or a path, for load_model()
  std::string gpu;    // a name or a path, for load_gpu()
  Workload workload;
  std::vector<std::string> policies;       // names of policies(), at least one
  std::string fidelity;                    // one of fidelity_words()
  std::optional<std::int64_t> layers = 1;  // empty: all, with embedding, final norm and LM head
  std::filesystem::path measurements;      // a folder or file to compare with; empty: none
};

// From a name of scenario_names() or a TOML path. Paths inside the file start at its folder.
// Defaults: phase forward, batch 1, seq 2048 (1 in decode), dtype bf16, all policies, fidelity
// hierarchy, layers 1. InputError as for models; also unknown phases and policies (nearest), a
// context outside decode, none in decode, or one shorter than the new tokens.
Scenario load_scenario(const std::string& name_or_path);
std::vector<std::string> scenario_names();

// The names of the simulator's fidelities (sim/estimate.h), which this layer does not include.
std::vector<std::string> fidelity_words();

}  // namespace fuseline
