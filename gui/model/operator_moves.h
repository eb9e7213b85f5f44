// Moving one operator from its kernel into another one, or out into a kernel of its own: where it
// can go, and what each place saves. An edit of policy `custom`, judged by the plan checker.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/compute.h"
#include "gui/model/edit_savings.h"
#include "gui/model/fusion_edits.h"
#include "gui/model/run_edits.h"

namespace fuseline::gui {

// The operator leaves its kernel, and is put into that of `beside`; without `beside` it gets a
// kernel of its own. All of its edges to operators of the other kernel stay on chip then. Takes the
// block before any rewrite and legal choices, as fusion_edits.h.
EditOutcome move_operator(const Graph& block, const CustomFusion& custom, const std::string& op,
                          const std::optional<std::string>& beside, Suggest suggest = Suggest::no);

// A kernel that the operator may be moved to.
struct MoveTarget {
  std::vector<std::string> operators;   // of that kernel; empty: a kernel of its own
  std::string name;                     // "gate_up + swiglu", "a kernel of its own"
  std::optional<std::string> beside{};  // for move_operator(); empty: a kernel of its own
  bool near = false;                    // a tensor goes between the two; others are never legal
  bool legal = false;
  std::string reason{};            // why it is illegal
  std::optional<Saving> saving{};  // of the whole block, once that was simulated
  std::string text{};   // "Move swiglu to gate_up: HBM traffic −90.2 MB ...", or why not
  std::string label{};  // the same in few words, for the graph: "−12.1 µs", "not possible"
};

struct MoveTargets {
  std::string op;
  std::string from;                   // its kernel: "down + residual2"
  std::vector<std::string> together;  // the other operators there
  std::vector<MoveTarget> targets;    // in the order of the plan's kernels, its own one last, where
                                      // it shares one now
  std::string problem{};              // in place of targets: a measured run, an unknown operator
};

// Which places are legal: about a millisecond for each that is near. Cancelled.
MoveTargets move_targets(const Document& document, const RunView& run, const std::string& op,
                         const std::stop_token& stop = {});

// The same with what each legal one saves: 9 to 15 ms each, from the cache or into it. Cancelled.
MoveTargets with_savings(MoveTargets targets, const Document& document, const RunView& run,
                         ResultCache& cache, const std::stop_token& stop = {});

}  // namespace fuseline::gui
