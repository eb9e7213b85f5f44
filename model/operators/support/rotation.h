// What a rotation and its inverse have in common.
#pragma once

#include "model/operators/operator_table.h"
#include "model/operators/support/lowering.h"

namespace fuseline {

// Three operations for every column that turns.
Flops rotation_flops(const Graph& graph, const Op& op);

// Pairs of operand 0 turn by the angles of tables 1 and 2, which have one column for each that
// turns.
void rotate(Emitter& e, const Op& op, PairFn fn);

}  // namespace fuseline
