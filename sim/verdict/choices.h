// The edges of a block that a person can keep on chip or not, on top of a plan's choices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/custom_fusion.h"
#include "model/graph.h"
#include "model/target.h"

namespace fuseline {

// One edge, and the two lists of choices that differ in it. Where one of them is not possible,
// `why_not` says why.
struct EdgeChoice {
  OnChipEdge edge;
  std::string tensor;
  bool kept = false;      // by the base
  std::string rewrite{};  // one more than the base's that makes it possible
  CustomFusion without{}, with{};
  std::string why_not{};
};

// Every pair of neighbouring operators of the block after the base's rewrites, but those that
// attention holds together in any plan. Where a rewrite that leaves the names of both makes a
// refused edge possible, it is taken.
std::vector<EdgeChoice> edge_choices(const Graph& block, const CustomFusion& base,
                                     const Target& target);

// The plan of these choices; empty where they are refused.
std::optional<Plan> possible_plan(const Graph& block, const CustomFusion& custom,
                                  const Target& target);

}  // namespace fuseline
