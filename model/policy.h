// Policies: named ways to turn a block into a plan. Each imitates a real system (docs: policies).
#pragma once

#include <string>
#include <vector>

#include "model/config/config.h"
#include "model/plan.h"
#include "model/target.h"

namespace fuseline {

struct PolicyInfo {
  std::string name;       // "torch-compile"
  std::string imitates;   // "Inductor + Triton"
  std::string fuses;      // one line
  bool trains = true;     // has plans for phase train
  int place = 1000;       // in lists: the documentation's order
  std::string version{};  // of the system it imitates, whose kernels it was compared with: "2.11"
  std::string unverified{};  // why nothing was compared; empty: something was
};

// The policy that the text names: its name, or "NAME@VERSION" with the version that it imitates.
// InputError for another version; a name that is none is given back, for the caller to refuse.
std::string without_version(const std::string& field, const std::string& text);

// All policies in the order of the documentation.
std::vector<PolicyInfo> policies();

// The plan of one block (one layer in its steady state), within the budgets of the target. Throws
// InputError for an unknown policy (nearest name) and for a policy that does not support the phase.
Plan make_plan(const std::string& policy, const ModelConfig& config, const Workload& workload,
               const Target& target = {});

// The same for any graph: a block, the model's ends, or one that a test or a window built.
Plan make_plan(const std::string& policy, const Graph& graph, const Target& target = {});

// Two neighbouring operators of a graph, by name.
struct OnChipEdge {
  std::string from;
  std::string to;
};

// Policy `custom`: the edges to keep on chip, chosen by hand, after the named rewrites
// (rewrite_names()), in order. The three operators of attention count as one kernel, except where
// the backward pass gets saved probabilities. InputError: an unknown rewrite or operator (nearest
// name), a rewrite that does not apply, no such edge, an illegal choice (with the reason).
Plan make_custom_plan(const Graph& graph, const std::vector<std::string>& rewrites,
                      const std::vector<OnChipEdge>& on_chip, const Target& target = {});
std::vector<std::string> rewrite_names();

}  // namespace fuseline
