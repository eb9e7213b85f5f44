// What norms and their gradients have in common. z stands for a normalised row element: r·x, or
// r·x - r·mean, from statistics [M, 1] (RMSNorm) or [M, 2] (LayerNorm).
#pragma once

#include "model/backward_adjoint.h"
#include "model/operators/operator.h"
#include "model/operators/support/lowering.h"
#include "model/operators/support/view.h"

namespace fuseline {

double normalised(const reference::View<const double>& x,
                  const reference::View<const double>& stats, std::int64_t m, std::int64_t n);
Value normalised(Emitter& e, Value x, const Operand& stats);
// Of operand `stats`: one operation an element with statistics [M, 1], two with [M, 2].
Flops normalising_flops(const Op& op, std::size_t stats);

// eps of a call in a block's text.
Attributes eps_of_call(OperatorCall& call);

// dx = r·(g - z·mean(g·z) (- mean(g))), g = w·dy
void norm_backward(const Graph& g, const Op& op, const TensorValues& in, TensorValues& out);
void norm_backward(Emitter& e, const Op& op);

// The gradients of what a norm reads and of its weight; `kind` is that of the first.
void norm_gradient(Adjoint& a, OpKind kind);

// A norm is done again with its saved statistics.
void norm_again(Adjoint& a, const Op& op, Again& again);

}  // namespace fuseline
