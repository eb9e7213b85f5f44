// The choices of policy `custom` as a scenario writes them: rewrites, and edges to keep on chip.
#pragma once

#include <string>
#include <vector>

#include "model/policy.h"

namespace fuseline {

inline constexpr const char* kCustomPolicy = "custom";

struct CustomFusion {
  std::vector<std::string> rewrites;  // of rewrite_names(), in order
  std::vector<OnChipEdge> on_chip;    // in the order of the choices
};

bool operator==(const OnChipEdge& a, const OnChipEdge& b);
bool operator==(const CustomFusion& a, const CustomFusion& b);

// What a rewrite of rewrite_names() does, in a sentence without a full stop; empty for other names.
std::string rewrite_summary(const std::string& name);

// "gate_up -> swiglu" and back. InputError (field and value, no file) without the arrow.
std::string edge_text(const OnChipEdge& edge);
OnChipEdge parse_edge(const std::string& text, const std::string& field);

// make_plan() of policy.h that knows `custom` too. InputError as there and as make_custom_plan().
Plan make_plan(const std::string& policy, const ModelConfig& config, const Workload& workload,
               const CustomFusion& custom, const Target& target = {});

// The plan of what stands before or after a model's blocks (build_entry, build_exit), under the
// blocks' policy. What a person chose for a block says nothing about these: under `custom` they run
// as under `per-operator`, one kernel for each operator.
Plan make_end_plan(const std::string& policy, const Graph& end, const Target& target = {});

// The choices that come nearest to a plan of another policy: its rewrites, how its backward pass is
// made, and the edges inside its kernels. The block after these rewrites has the plan's operators
// and edges. What `custom` cannot express of the plan's kernels (a policy's joining of kernels side
// by side, phases of one launch) is left out. `graph`: the block before the policy's rewrites.
CustomFusion custom_like(const Plan& plan, const Graph& graph);

}  // namespace fuseline
