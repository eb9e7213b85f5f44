// What the tests need to put the operator of quick_gelu.cpp into a graph.
#pragma once

#include "model/operators/operator.h"

namespace fuseline::extension {

extern const Operator quick_gelu;
extern const Operator quick_gelu_backward;

}  // namespace fuseline::extension
