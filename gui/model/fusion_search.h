// The legal edits that come nearest to an illegal one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/fusion_edits.h"
#include "model/plan.h"

namespace fuseline::gui {

inline constexpr std::size_t kMostSuggestions = 3;

// At most kMostSuggestions, fewest changes first: the edge behind a rewrite that applies, or such a
// rewrite that spares its tensor; the edge together with another one, without one that is chosen;
// then behind two rewrites, without two edges; where none of these is legal, another edge of one of
// the two operators.
std::vector<Suggestion> nearest_fusions(const Graph& block, const CustomFusion& custom,
                                        const OnChipEdge& edge);

// Of the wanted edges, as many as go together: all but one, or as many as go in order.
std::vector<Suggestion> largest_fusions(const Graph& block, const CustomFusion& custom,
                                        const std::vector<OnChipEdge>& wanted);

// Empty when the choices are illegal.
std::optional<Plan> legal_plan(const Graph& block, const CustomFusion& custom);

// "gate_up → swiglu"
std::string arrow_text(const OnChipEdge& edge);

}  // namespace fuseline::gui
