// Which experts a row goes to, and in which order rows of the same expert lie: the decisions alone,
// as plain functions.
#pragma once

#include "ragged.cuh"

namespace fuseline::gpu {

// How gates come from scores: a softmax of the chosen experts' scores, those of a softmax of all,
// or sigmoids divided by their sum (GateWeights of model/operators/attributes.h).
enum class GateWeights { softmax, softmax_of_all, sigmoid };

// Of two experts with these scores: whether the first is chosen before the other. Of equal scores
// the lower number is.
FUSELINE_HD bool chosen_before(float score, int expert, float other_score, int other) {
  return score > other_score || (score == other_score && expert < other);
}

// Of two keys at these places: whether the first comes before the other when they are sorted. Equal
// keys keep their order.
FUSELINE_HD bool sorted_before(float key, int place, float other_key, int other) {
  return key < other_key || (key == other_key && place < other);
}

// Number `index` of the experts of row m of `rows`, where the groups' lengths are given before
// there are scores: places 0, 1, ... of all groups belong to rows m = place mod rows
// (model/expert_routing.h).
FUSELINE_HD int expert_of_pattern(const RowGroups& groups, int rows, int m, int index) {
  return group_of(groups, m + index * rows);
}

}  // namespace fuseline::gpu
