// Fusing and splitting by hand: the edges of policy `custom`. Edits are judged by the plan checker;
// an illegal one comes back with its reason in words and with the nearest legal ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/custom_fusion.h"
#include "model/graph.h"

namespace fuseline::gui {

// Another edit that is legal.
struct Suggestion {
  CustomFusion custom;
  std::string text;  // "first interleave_gate_up", "also fuse down → residual2", "without a → b"
};

struct EditOutcome {
  bool legal = false;
  CustomFusion custom;  // after the edit; when it is illegal, as before
  std::string what;     // for the undo menu: "fuse gate_up → swiglu"
  std::string
      reason;  // why it is illegal, from the plan checker; may also say that nothing changes
  std::vector<Suggestion> suggestions;  // fewest changes first, at most three; none when legal
};

// Looking for the nearest legal edits takes longer than the judgement itself.
enum class Suggest : std::uint8_t { no, yes };

// All functions take the block before any rewrite (build_block) and legal choices. Unknown
// operators are InputErrors as from make_custom_plan.

// Fuses the edge's operators when they are apart, splits them when they share a kernel. A split
// removes the fewest chosen edges that set the two apart.
EditOutcome toggle_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge,
                        Suggest suggest = Suggest::yes);
// The same where the plan of the choices is at hand: judging many edges builds it once.
EditOutcome toggle_edge_of(const Plan& plan, const Graph& block, const CustomFusion& custom,
                           const OnChipEdge& edge, Suggest suggest);
EditOutcome fuse_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge,
                      Suggest suggest = Suggest::yes);
EditOutcome split_edge(const Graph& block, const CustomFusion& custom, const OnChipEdge& edge);

// A lasso: keeps every edge between two of the operators on chip.
EditOutcome fuse_all(const Graph& block, const CustomFusion& custom,
                     const std::vector<std::string>& operators);

// Adds a rewrite behind the others, or takes it away; edges of operators that are then no longer
// there are dropped.
EditOutcome toggle_rewrite(const Graph& block, const CustomFusion& custom,
                           const std::string& rewrite);

// The rewrites that the block takes, in the order of rewrite_names(), with whether they are on.
struct RewriteChoice {
  std::string name;
  std::string summary;
  std::string label;  // the summary as a line of a menu
  bool on = false;
  bool can_toggle = false;
  std::string why_not;  // when it cannot
};
std::vector<RewriteChoice> rewrite_choices(const Graph& block, const CustomFusion& custom);

// The checker's reason against the choices; empty = legal.
std::string why_illegal(const Graph& block, const CustomFusion& custom);

// Whether the two operators share a kernel under the choices. False for unknown names.
bool share_kernel(const Plan& plan, const OnChipEdge& edge);

}  // namespace fuseline::gui
