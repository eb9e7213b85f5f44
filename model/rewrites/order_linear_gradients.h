// The order in which a framework computes the gradients of a linear layer with bias: of its input,
// its weight, its bias. (Without bias: of its weight, then its input, as reverse mode has them.)
#pragma once

#include "model/rewrites/rewrite.h"

namespace fuseline {

Rewrite order_linear_gradients();

}  // namespace fuseline
