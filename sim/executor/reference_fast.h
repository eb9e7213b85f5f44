// The fp64 reference of blocks too large for plain loops: the same operators as run_reference, but
// products by OpenBLAS, and attention head by head, so that scores and probabilities need no
// memory.
#pragma once

#include "model/graph.h"
#include "model/reference.h"
#include "sim/executor/parallel.h"
#include "sim/executor/storage.h"

namespace fuseline::executor {

// The values of the graph's tensors, given and computed, but for weights that only products read,
// and for scores and probabilities that only attention reads. Given tensors have the values that
// their storage types hold. InputError when one is missing. The graph must outlive the result.
TensorValues fast_reference(const Graph& graph, const Inputs& inputs, const Workers& workers);

// Whether the reference takes products of groups of rows from OpenBLAS too, whose matrices are then
// in memory as doubles a panel at a time: where they are no codes.
bool products_of_groups(const Op& op);

}  // namespace fuseline::executor
