// Applies a plan's preparation to values: from the original block's inputs and weights to the
// plan's.
#pragma once

#include "model/plan.h"
#include "model/reference.h"

namespace fuseline {

// `original` holds the tensors that the block's own graph reads. The result holds them and those
// that only the plan reads (folded weights, statistics of x), reordered as the plan wants them.
// Computed in fp64. InputError as run_reference.
NamedTensors prepare(const Preparation& preparation, const Graph& plan_graph,
                     const NamedTensors& original);

// Results of the plan's graph that came out in the order of reordered weights, as the original
// block's graph gives them. Other values stay.
NamedTensors restore(const Preparation& preparation, const Graph& plan_graph, NamedTensors results);

}  // namespace fuseline
