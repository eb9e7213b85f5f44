// Rules of gradients that several operators have in common.
#pragma once

#include "model/backward_adjoint.h"
#include "model/operators/operator.h"

namespace fuseline {

// dx from dy and x, by an operator of the given kind.
void element_wise_gradient(Adjoint& a, OpKind kind);

}  // namespace fuseline
